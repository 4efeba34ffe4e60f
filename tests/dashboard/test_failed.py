"""Dead letters and the operations that bring them back, in a real browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.processes import wait_for
from support.serving import OPS
from tenure.admin import JobRequest
from tests.dashboard.holding import dead, last_change
from tests.dashboard.looks import hold

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service


def many(service: Service, queue: str, count: int) -> None:
    """This many jobs that are due much later."""
    jobs = [JobRequest(task="later", args={}, queue=queue, delay=3600) for _ in range(1000)]
    for start in range(0, count, 1000):
        service.admin.jobs.enqueue_many(jobs[: count - start], OPS)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_group_is_retried_at_a_rate_and_nothing_else(
    browser: Browser, service: Service, scripts: bool
) -> None:
    """Shows R15 and R36."""
    queue = f"group-{scripts}"
    hit = [dead(service, queue, f"no answer from 10.0.0.{n}") for n in range(3)]
    other = dead(service, queue, "mailbox full", task="other")
    with seated(browser, service, scripts=scripts) as seat:
        seat.go(f"/failed?queue={queue}")
        row = seat.page.locator("[data-entry]", has_text="no answer from")
        expect(row.locator('[data-label="Jobs"]')).to_have_text("3")
        expect(row.locator('[data-label="Sample"]')).to_have_text(hit[-1])
        row.locator('[data-action="retry"] a').click()
        expect(seat.page.locator("#matched")).to_contain_text("3 jobs")
        seat.page.get_by_label("Jobs per second").fill("100")
        seat.page.get_by_label("Reason").fill("the host is back")
        seat.page.get_by_role("button", name="Retry 3 jobs").click()
        expect(seat.page.locator("#status")).to_contain_text("Started: 3 jobs, 100 per second.")
        operation = seat.page.url.split("/")[-1].split("?")[0]

    assert wait_for(lambda: service.admin.jobs.get(int(hit[0])).state == "queued", 20)  # type: ignore[union-attr]
    assert {service.admin.jobs.get(int(one)).state for one in hit} == {"queued"}  # type: ignore[union-attr]
    assert service.admin.jobs.get(int(other)).state == "failed"  # type: ignore[union-attr]
    row_ = service.admin.operations.get(int(operation))
    assert row_ is not None
    assert (row_.source, row_.reason, row_.rate) == ("page", "the host is back", 100)
    change = last_change(service, f"operation:{operation}")
    assert (change.source, change.reason) == ("page", "the host is back")


def test_a_new_dead_letter_comes_by_itself(service: Service, seat: Seat) -> None:
    """Shows R15 and R35."""
    seat.go("/failed?queue=fresh")
    expect(seat.page.get_by_role("heading", name="No dead letters match")).to_be_visible()
    dead(service, "fresh")
    expect(seat.page.locator("[data-entry]")).to_have_count(1)
    expect(seat.page.locator("#queue-now")).to_contain_text("served by mailer")


def test_a_queue_is_paused_with_a_reason_where_its_dead_letters_are(
    service: Service, seat: Seat
) -> None:
    dead(service, "to-pause")
    seat.go("/failed?queue=to-pause")
    seat.page.keyboard.press("p")
    seat.page.locator('[data-action="pause"]').get_by_label("Reason").fill("failover")
    seat.page.locator('[data-action="pause"] form button').click()
    expect(seat.page.locator("#queue-now")).to_contain_text("paused by first (token 1): “failover”")
    row = last_change(service, "queue:to-pause")
    assert (row.action, row.source, row.reason) == ("queue.pause", "page", "failover")
    seat.page.locator('[data-action="pause"] summary').click()
    seat.page.locator('[data-action="pause"] form button').click()
    expect(seat.page.locator("#queue-now")).not_to_contain_text("paused")


def test_the_row_in_focus_is_retried_by_the_keyboard(service: Service, seat: Seat) -> None:
    dead(service, "keys", "one")
    dead(service, "keys", "two", task="task2")
    seat.go("/failed?queue=keys")
    seat.page.keyboard.press("j")
    seat.page.keyboard.press("j")
    seat.page.keyboard.press("r")
    expect(seat.page.locator("#matched")).to_contain_text("1 job")
    expect(seat.page.locator("dl.facts")).to_contain_text("task2")


def test_what_destroys_many_is_typed(service: Service, seat: Seat) -> None:
    many(service, "typed", 1001)
    seat.go("/operations/new?kind=cancel&state=queued&queue=typed")
    seat.page.get_by_label("Type 1001 to confirm").fill("1000")
    seat.page.get_by_role("button", name="Cancel 1,001 jobs").click()
    expect(seat.page.get_by_role("alert")).to_contain_text("1,001 match now")
    assert all(one.filter.queue != "typed" for one in service.admin.operations.list(count=1))
    seat.page.get_by_label("Type 1001 to confirm").fill("1001")
    seat.page.get_by_role("button", name="Cancel 1,001 jobs").click()
    expect(seat.page.locator("#status")).to_contain_text("Started: 1,001 jobs")


def test_an_operation_is_paused_resumed_and_aborted_and_moves_by_itself(
    service: Service, seat: Seat
) -> None:
    """Shows R36 and R35."""
    many(service, "steered", 200)
    seat.go("/operations/new?kind=cancel&state=queued&queue=steered")
    seat.page.get_by_label("Jobs per second").fill("2")
    seat.page.get_by_role("button", name="Cancel 200 jobs").click()
    expect(seat.page.locator("#operation-state")).to_have_text("running")
    operation = seat.page.url.split("/")[-1].split("?")[0]
    for action, audited, becomes in (
        ("pause", "operation.pause", "paused"),
        ("pause", "operation.resume", "running"),
        ("abort", "operation.abort", "aborted"),
    ):
        seat.page.locator(f'[data-action="{action}"] summary').click()
        seat.page.locator(f'[data-action="{action}"]').get_by_label("Reason").fill(
            f"to be {becomes}"
        )
        seat.page.locator(f'[data-action="{action}"] form button').click()
        expect(seat.page.locator("#operation-state")).to_have_text(becomes)
        change = last_change(service, f"operation:{operation}")
        assert (change.source, change.reason) == ("page", f"to be {becomes}"), audited
    expect(seat.page.locator("[data-action]")).to_have_count(0)

    lines = seat.context.request.get(f"{service.url}/operations/{operation}/ids.ndjson").text()
    assert len([json.loads(line)["job_id"] for line in lines.splitlines()]) == 200
    seat.go("/operations")
    expect(seat.page.locator("[data-entry]").first).to_contain_text("aborted")


def test_who_may_look_at_one_queue_alone_sees_that_one(browser: Browser, service: Service) -> None:
    dead(service, "mine", "words of the error")
    dead(service, "theirs")
    made = service.admin.tokens.create("mine", OPS, scopes=["read"], queues=["mine"])
    with seated(browser, service, secret=made.secret) as seat:
        seat.go("/failed")
        expect(seat.page.get_by_role("heading", name="Choose a queue")).to_be_visible()
        expect(seat.page.locator(".facets")).not_to_contain_text("theirs")
        seat.page.get_by_role("link", name="mine").click()
        expect(seat.page.locator("[data-entry]")).to_contain_text(
            "message hidden: needs payload:read"
        )
        assert "words of the error" not in seat.page.content()
        expect(seat.page.locator("[data-action]")).to_have_count(0)
        answer = seat.go("/operations/new?kind=retry&state=failed&queue=mine")
        assert answer is not None
        assert answer.status == 403


def test_everybody_can_use_them(browser: Browser, service: Service) -> None:
    """Shows R35."""
    dead(service, "seen", "a long sentence " * 30, task="a.long." + "name_" * 20)
    many(service, "seen", 5)
    with service.caller() as caller:
        request = {"kind": "move", "filter": "queue:seen state:queued", "changes": {"priority": 1}}
        operation = caller.post("/v1/operations", json=request).json()["id"]
    paths = ["/failed", "/failed?queue=seen", "/operations", f"/operations/{operation}"]
    hold(browser, service, [*paths, "/operations/new?kind=discard&state=failed&queue=seen"])
