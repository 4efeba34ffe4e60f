"""The page of one job, in a real browser against a real server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.serving import OPS
from tests.dashboard.holding import dead, holding, last_change
from tests.dashboard.looks import hold

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

# Two seconds, and what the page takes on a busy machine.


def test_life_of_a_job_is_shown_step_by_step(service: Service, seat: Seat) -> None:
    """Shows R15 and R16: two attempts with who, how long and why, and what lay between."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with holding(service, "life") as holder:
        body = {"task": "send", "queue": "life"}
        made = holder.caller.post("/v1/jobs", json=body, headers={"traceparent": trace})
        first = holder.take()
        error = {"type": "TimeoutError", "message": "no answer from 10.0.0.7"}
        values = {"lease": first["lease"], "error": error, "retry": "after", "after": 0.05}
        holder.post("/v1/leases:fail", values)
        holder.post("/v1/leases:complete", {"lease": holder.take()["lease"], "result": {"n": 1}})
    seat.go(f"/jobs/{made.json()['id']}?tab=result")

    steps = seat.page.locator(".timeline > li")
    names = [text.strip() for text in steps.locator("> b").all_inner_texts()]
    assert names == ["Enqueued", "Due", "Attempt 1", "Backoff", "Attempt 2", "Completed"]
    expect(steps.nth(0)).to_contain_text(trace)
    expect(steps.nth(0)).to_contain_text("by first (token 1), http")
    expect(steps.nth(2)).to_contain_text(
        f"mailer · fencing token {first['fence']} · 0 renewals · ran"
    )
    expect(steps.nth(2)).to_contain_text("TimeoutError: no answer from 10.0.0.7")
    expect(steps.nth(3)).to_contain_text("after 50 ms")
    expect(seat.page.locator("#tab-result pre").first).to_have_text('{ "n": 1 }')


def test_a_late_result_is_shown_as_refused(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("late")
    with holding(service, "late") as holder:
        job = holder.take()
        service.admin.jobs.revoke([int(job_id)], OPS)
        answer = holder.caller.post("/v1/leases:complete", json={"lease": job["lease"]})
        assert answer.status_code == 409
    seat.go(f"/jobs/{job_id}")
    expect(seat.page.locator(".timeline")).to_contain_text("A late result was rejected")


def test_a_running_job_shows_its_lease_and_its_report_as_they_are(
    service: Service, seat: Seat
) -> None:
    """Shows R35: what happens comes by itself, and the lease ticks between."""
    job_id = service.enqueue("ticking", lease=59)
    seat.go(f"/jobs/{job_id}")
    expect(seat.page.locator("#why")).to_contain_text("No live worker serves queue")
    with holding(service, "ticking") as holder:
        job = holder.take()
        expect(seat.page.locator("#lease .words")).to_contain_text(re.compile(r"expires in \d\d s"))
        values = {"lease": job["lease"], "done": 3, "total": 10, "message": "page 3"}
        holder.post("/v1/leases:progress", values)
        expect(seat.page.locator("#progress")).to_contain_text("3 of 10 · page 3")
        bar = seat.page.locator("#progress progress")
        assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("3", "10")
        holder.post("/v1/leases:renew", {"leases": [job["lease"]]})
        expect(seat.page.locator(".timeline .now")).to_contain_text("1 renewal")
        holder.post("/v1/leases:complete", {"lease": job["lease"]})
    expect(seat.page.locator(".state")).to_have_text("completed")


def test_a_job_that_waits_says_why(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("stopped")
    service.admin.queues.pause("stopped", OPS)
    seat.go(f"/jobs/{job_id}")
    expect(seat.page.locator("#why")).to_contain_text("Queue stopped is paused by ops")


ACTIONS = {
    "retry": ("failed", "retry", "queued"),
    "cancel": ("queued", "cancel", "cancelled"),
    "revoke": ("running", "revoke", "cancelled"),
    "pause": ("queued", "hold", "held"),
    "move": ("queued", "move", "scheduled"),
    "edit": ("queued", "edit", "scheduled"),
    "rerun": ("failed", "rerun", "queued"),
    "delete": ("failed", "delete", ""),
}


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_done_with_its_reason_and_is_in_the_audit(
    browser: Browser, service: Service, action: str, scripts: bool
) -> None:
    """Shows R36, with scripts and without."""
    state, audited, becomes = ACTIONS[action]
    queue = f"actions-{action}-{scripts}"
    job_id = dead(service, queue) if state == "failed" else service.enqueue(queue)
    with holding(service, queue) as holder, seated(browser, service, scripts=scripts) as seat:
        if state == "running":
            holder.take()
        seat.go(f"/jobs/{job_id}")
        form = seat.page.locator(f'[data-action="{action}"]')
        form.locator("summary").click()
        form.get_by_label("Reason").fill("the host is back")
        if action in ("move", "edit"):
            form.get_by_label("Due (UTC)").fill("2040-01-01T10:00")
            form.get_by_label("Priority").fill("9")
        form.locator("form button").click()
        expect(seat.page.locator("#status")).not_to_be_empty()
        if becomes:
            expect(seat.page.locator(".state")).to_have_text(becomes)

    row = last_change(service, f"job:{job_id}")
    assert (row.action, row.source, row.reason) == (audited, "page", "the host is back")


def test_a_held_job_is_let_go_by_the_keyboard(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("kept")
    service.admin.jobs.hold([int(job_id)], OPS)
    seat.go(f"/jobs/{job_id}")
    seat.page.keyboard.press("p")
    seat.page.keyboard.type("enough")
    seat.page.keyboard.press("Enter")
    expect(seat.page.locator(".state")).to_have_text("queued")
    assert last_change(service, f"job:{job_id}").reason == "enough"


def test_late_report_is_logged_and_changes_nothing(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("raced")
    seat.go(f"/jobs/{job_id}")
    seat.page.locator('[data-action="pause"] summary').click()
    service.admin.jobs.cancel([int(job_id)], OPS)
    seat.page.locator('[data-action="pause"] form button').click()
    expect(seat.page.locator("#status")).to_contain_text("is not queued.")


def test_a_form_that_is_filled_is_not_changed_under_the_hand(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("filled")
    seat.go(f"/jobs/{job_id}")
    seat.page.locator('[data-action="cancel"] summary').click()
    seat.page.locator('[data-action="cancel"]').get_by_label("Reason").fill("half a sent")
    service.admin.jobs.hold([int(job_id)], OPS)
    expect(seat.page.locator("#live-state")).to_contain_text("paused: form open")
    written = seat.page.locator('[data-action="cancel"]').get_by_label("Reason")
    assert written.input_value() == "half a sent"
    seat.page.locator('[data-action="cancel"] summary').click()
    expect(seat.page.locator(".state")).to_have_text("held")


def test_an_error_shows_own_frames_or_all(browser: Browser, service: Service) -> None:
    job_id = dead(service, "frames")
    with seated(browser, service, scripts=False) as seat:
        seat.go(f"/jobs/{job_id}")
        seat.page.get_by_role("link", name="errors").click()
        shown = seat.page.locator("#tab-errors pre")
        expect(shown).to_contain_text("/app/mail.py")
        expect(shown).not_to_contain_text("site-packages")
        seat.page.get_by_role("link", name="all frames").click()
        expect(shown).to_contain_text("site-packages")


def test_the_events_and_the_raw_job_are_all_there_is(service: Service, seat: Seat) -> None:
    job_id = dead(service, "told")
    with service.caller() as caller:
        values = {"kind": "retry", "filter": {"ids": [job_id]}, "reason": "once more"}
        operation = caller.post("/v1/operations", json=values).json()["id"]
    seat.go(f"/jobs/{job_id}?tab=events")
    events = seat.page.locator("#tab-events tbody")
    for what in ("enqueue", "attempt 1", "ended: failed", f"operation {operation}: retry"):
        expect(events).to_contain_text(what)
    seat.go(f"/jobs/{job_id}?tab=raw")
    expect(seat.page.locator("#tab-raw")).to_contain_text(f"{service.url}/v1/jobs/{job_id}")
    expect(seat.page.locator("#tab-raw")).to_contain_text(f"tenure job show {job_id}")


def test_without_the_scope_nothing_is_shown_of_what_it_carries_and_nothing_can_be_done(
    browser: Browser, service: Service
) -> None:
    job_id = dead(service, "own", "secret words", args={"name": "Ada"})
    other = service.enqueue("other")
    made = service.admin.tokens.create("reader", OPS, scopes=["read"], queues=["own"])
    with seated(browser, service, secret=made.secret) as seat:
        for tab in ("arguments", "result", "items", "errors", "log"):
            seat.go(f"/jobs/{job_id}?tab={tab}")
            expect(seat.page.get_by_role("heading", name="Hidden")).to_be_visible()
            assert "Ada" not in seat.page.content()
            assert "secret words" not in seat.page.content()
        expect(seat.page.locator("[data-action]")).to_have_count(0)
        answer = seat.go(f"/jobs/{other}")
        assert answer is not None
        assert answer.status == 404


def test_hidden_fields_are_hidden(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("secrets", args={"password": "hunter2", "to": "ada"})
    for tab in ("arguments", "raw"):
        seat.go(f"/jobs/{job_id}?tab={tab}")
        expect(seat.page.locator("#live")).to_contain_text("<redacted>")
        assert "hunter2" not in seat.page.content()


def test_everybody_can_use_it(browser: Browser, service: Service) -> None:
    """Shows R35."""
    failed = dead(service, "looks", args={"list": list(range(60))}, tags=["eu"])
    with holding(service, "looks-running") as holder:
        running = service.enqueue("looks-running", task="a.long." + "name_" * 20)
        values = {"lease": holder.take()["lease"], "done": 1, "total": 2, "items": {"a": 1}}
        holder.post("/v1/leases:progress", values)
        waiting = service.enqueue("looks-waiting")
        paths = [f"/jobs/{failed}?tab={tab}" for tab in ("errors", "events", "raw")]
        hold(browser, service, [*paths, f"/jobs/{running}?tab=items", f"/jobs/{waiting}"])


@pytest.mark.parametrize("scripts", [True, False])
def test_arguments_are_changed_in_the_form_that_shows_them(
    browser: Browser, service: Service, scripts: bool
) -> None:
    queue = f"edited-{scripts}"
    job_id = dead(service, queue, args={"to": "ad", "text": "<b>\u202e</b>", "n": 1.5})
    with seated(browser, service, scripts=scripts) as seat:
        seat.go(f"/jobs/{job_id}")
        form = seat.page.locator('[data-action="edit"]')
        form.locator("summary").click()
        field = form.get_by_label("Arguments (JSON)")
        field.fill(field.input_value().replace('"ad"', '"ada"'))
        form.locator("form button").click()
        expect(seat.page.locator("#status")).to_contain_text(f"Job {job_id} is edited.")
        expect(seat.page.locator("#tab-arguments pre")).to_contain_text('"to": "ada"')
        assert stored_args(service, job_id) == {"to": "ada", "text": "<b>\u202e</b>", "n": 1.5}

        retry = seat.page.locator('[data-action="retry"]')
        retry.locator("summary").click()
        retry.get_by_label("Arguments (JSON)").fill('{"to": "bob"}')
        retry.locator("form button").click()
        expect(seat.page.locator(".state")).to_have_text("queued")
        assert stored_args(service, job_id) == {"to": "bob"}


def test_an_unchanged_field_leaves_the_arguments_alone(service: Service, seat: Seat) -> None:
    """Another operator may have changed them since the page was loaded."""
    job_id = service.enqueue("untouched", args={"a": 1, "b": "two"})
    seat.go(f"/jobs/{job_id}")
    form = seat.page.locator('[data-action="edit"]')
    form.locator("summary").click()
    form.get_by_label("Priority").fill("9")
    service.admin.jobs.edit([job_id], OPS, args={"a": 2})
    form.locator("form button").click()
    expect(seat.page.locator("#status")).to_contain_text("is edited.")
    assert stored_args(service, job_id) == {"a": 2}
    assert last_change(service, f"job:{job_id}").after == {"priority": 9}


def test_hidden_arguments_are_not_in_the_form(service: Service, seat: Seat) -> None:
    """A mark in the field would look like the value, and could be sent back."""
    job_id = service.enqueue("hidden", args={"to": "ad", "password": "hunter22"})
    seat.go(f"/jobs/{job_id}")
    form = seat.page.locator('[data-action="edit"]')
    form.locator("summary").click()
    field = form.get_by_label("Arguments (JSON)")
    assert field.input_value() == ""
    expect(form).to_contain_text("Some arguments are hidden.")
    field.fill('{"to": "ada", "password": "<redacted>"}')
    form.locator("form button").click()
    expect(seat.page.locator("main")).to_contain_text("must not contain <redacted>")
    assert stored_args(service, job_id) == {"to": "ad", "password": "hunter22"}


@pytest.mark.parametrize("text", ["{", "[" * 900 + "]" * 900, "[1]", "7"])
def test_arguments_that_are_not_an_object_are_refused(service: Service, text: str) -> None:
    job_id = service.enqueue("syntax")
    with service.browser() as browser:
        form = {"mark": service.mark(browser), "args": text}
        answer = browser.post(f"/jobs/{job_id}/edit", data=form, headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert stored_args(service, job_id) == {"n": 1}


def test_a_job_that_runs_again_leads_to_the_new_one_and_back(service: Service, seat: Seat) -> None:
    job_id = service.enqueue("again", key="once more")
    service.admin.jobs.cancel([job_id], OPS)
    seat.go(f"/jobs/{job_id}")
    form = seat.page.locator('[data-action="rerun"]')
    form.locator("summary").click()
    form.get_by_label("Keep the key").check()
    form.locator("form button").click()
    expect(seat.page.locator("#status")).to_contain_text(f"Job {job_id} runs again as job")
    expect(seat.page.locator(".state")).to_have_text("queued")
    expect(seat.page.locator("main")).to_contain_text("key once more")
    seat.page.get_by_role("link", name=str(job_id), exact=True).click()
    expect(seat.page.locator(".state")).to_have_text("cancelled")


def test_an_operator_who_may_not_enqueue_gets_no_field_for_arguments(service: Service) -> None:
    job_id = service.enqueue("limited", args={"n": 1})
    made = service.admin.tokens.create("op", OPS, role="operator")
    with service.browser(made.secret) as browser:
        page = browser.get(f"/jobs/{job_id}").text
    assert 'data-action="edit"' in page
    assert "<textarea" not in page


def stored_args(service: Service, job_id: str) -> object:
    job = service.admin.jobs.get(job_id)
    assert job
    return job.args
