"""Jobs, found and chosen in a real browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.processes import wait_for
from support.serving import OPS
from tests.dashboard.holding import dead, holding
from tests.dashboard.looks import hold

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

# Two seconds, and what the page takes on a busy machine.


def shown(seat: Seat) -> set[str]:
    """The ids of the jobs on the page."""
    rows = seat.page.locator("[data-entry]")
    return {(one.get_attribute("id") or "").removeprefix("job-") for one in rows.all()}


def test_the_counts_are_the_filters(browser: Browser, service: Service) -> None:
    """Shows R35 and R36; without scripts, for they are links."""
    failed = dead(service, "counted", task="mail.send")
    waiting = {service.enqueue("counted", task="mail.send", delay=3600) for _ in range(2)}
    service.enqueue("elsewhere")
    with seated(browser, service, scripts=False) as seat:
        seat.go("/jobs?filter=queue:counted")
        assert shown(seat) == {failed, *waiting}
        facets = seat.page.locator(".facets")
        expect(facets.get_by_role("link", name="failed 1")).to_be_visible()
        facets.get_by_role("link", name="failed 1").click()
        assert shown(seat) == {failed}
        assert seat.page.get_by_label("Selector").last.input_value() == "state:failed queue:counted"
        facets.get_by_role("link", name="failed 1").click()
        assert shown(seat) == {failed, *waiting}


def test_a_row_says_what_there_is_to_know(service: Service, seat: Seat) -> None:
    failed = dead(service, "rows", args={"to": "ada", "password": "hunter2"}, task="mail.send")
    seat.go("/jobs?filter=queue:rows")
    row = seat.page.locator(f"#job-{failed}")
    expect(row.locator(".state")).to_have_text("failed")
    for words in ("mail.send", failed, "attempt 1 of 3", "TimeoutError: no answer from", "rows"):
        expect(row).to_contain_text(words)
    expect(row).to_contain_text('"to": "ada"')
    assert "hunter2" not in seat.page.content()
    expect(seat.page.locator("#searched")).to_contain_text("Searched")


def test_selector_is_typed_and_an_empty_one_is_refused(service: Service, seat: Seat) -> None:
    wanted = service.enqueue("typed", args={"user": {"id": 7}})
    service.enqueue("typed", args={"user": {"id": 8}})
    seat.go("/jobs")
    seat.page.keyboard.press("/")
    seat.page.keyboard.type("queue:typed args.user.id:7")
    seat.page.keyboard.press("Enter")
    expect(seat.page.locator("[data-entry]")).to_have_count(1)
    assert shown(seat) == {wanted}
    box = seat.page.locator("form.filter input")
    box.fill("colour:red")
    box.press("Enter")
    expect(seat.page.locator("#wrong")).to_contain_text("there is no field")
    assert box.input_value() == "colour:red"
    box.fill(wanted)
    box.press("Enter")
    expect(seat.page.locator("h1")).to_have_text("task")


def test_what_is_new_comes_by_itself_and_what_is_chosen_stays(service: Service, seat: Seat) -> None:
    """Shows R35."""
    first = service.enqueue("growing")
    seat.go("/jobs?filter=queue:growing")
    second = service.enqueue("growing")
    expect(seat.page.locator(f"#job-{second}")).to_be_visible()
    box = seat.page.locator(f"#job-{first} input[data-row]")
    box.check()
    expect(seat.page.locator("[data-chosen]")).to_have_text("1 selected")
    service.enqueue("growing")
    expect(seat.page.locator("#live-state")).to_have_text("paused: rows selected")
    expect(seat.page.locator("[data-entry]")).to_have_count(2)
    assert box.is_checked()
    box.uncheck()
    expect(seat.page.locator("[data-entry]")).to_have_count(3)


@pytest.mark.parametrize("scripts", [True, False])
def test_what_is_chosen_is_done_as_an_operation(
    browser: Browser, service: Service, scripts: bool
) -> None:
    """Shows R36: two of three are cancelled; then all that match are moved."""
    queue = f"chosen-{scripts}"
    ids = [service.enqueue(queue, delay=3600) for _ in range(3)]
    with seated(browser, service, scripts=scripts) as seat:
        seat.go(f"/jobs?filter=queue:{queue}")
        for one in ids[:2]:
            seat.page.locator(f"#job-{one} input[data-row]").check()
        seat.page.get_by_role("button", name="Cancel").click()
        expect(seat.page.locator("#matched")).to_contain_text("2 jobs")
        seat.page.get_by_label("Reason").fill("sent twice")
        seat.page.get_by_role("button", name="Cancel 2 jobs").click()
        expect(seat.page.locator("#status")).to_contain_text("Started: 2 jobs")

        seat.go(f"/jobs?filter=queue:{queue}+state:queued")
        seat.page.get_by_label("All matching jobs").check()
        seat.page.get_by_role("button", name="Move").click()
        seat.page.get_by_label("To priority").fill("9")
        seat.page.get_by_role("button", name="Move").click()
        expect(seat.page.locator("#status")).to_contain_text("Started:")

    def ended() -> bool:
        return all(service.admin.jobs.get(int(one)).state == "cancelled" for one in ids[:2])  # type: ignore[union-attr]

    assert wait_for(ended, 20)
    assert wait_for(lambda: service.admin.jobs.get(int(ids[2])).priority == 9, 20)  # type: ignore[union-attr]
    [moved, cancelled] = service.admin.operations.list(count=2)
    assert (cancelled.source, cancelled.reason, cancelled.total) == ("page", "sent twice", 2)
    assert (moved.source, moved.filter.queue) == ("page", queue)


def test_nothing_is_done_to_nothing(service: Service, seat: Seat) -> None:
    service.enqueue("none-chosen")
    seat.go("/jobs?filter=queue:none-chosen")
    seat.page.get_by_role("button", name="Delete").click()
    expect(seat.page.locator("#live")).to_contain_text("select jobs first")


def test_rows_are_walked_and_chosen_by_keys(service: Service, seat: Seat) -> None:
    ids = [service.enqueue("walked") for _ in range(3)]
    seat.go("/jobs?filter=queue:walked")
    for key in ("j", "j", "x"):
        seat.page.keyboard.press(key)
    expect(seat.page.locator(f"#job-{ids[1]} input[data-row]")).to_be_checked()
    seat.page.keyboard.press("Enter")
    expect(seat.page).to_have_url(f"{service.url}/jobs/{ids[1]}")


def test_older_ones_are_a_page_away_and_all_are_exported(service: Service, seat: Seat) -> None:
    ids = {service.enqueue("paged") for _ in range(53)}
    seat.go("/jobs?filter=queue:paged")
    newest = shown(seat)
    seat.page.get_by_role("link", name="Older").click()
    expect(seat.page.locator("[data-entry]")).to_have_count(3)
    assert newest | shown(seat) == ids
    seat.page.get_by_role("link", name="Newest").click()
    expect(seat.page.locator("[data-entry]")).to_have_count(50)
    lines = seat.context.request.get(f"{service.url}/jobs.ndjson?filter=queue:paged").text()
    assert {json.loads(line)["id"] for line in lines.splitlines()} == ids


def test_who_may_see_one_queue_sees_that_one_without_payloads(
    browser: Browser, service: Service
) -> None:
    mine = service.enqueue("mine", args={"name": "Ada"})
    service.enqueue("theirs")
    made = service.admin.tokens.create("mine", OPS, scopes=["read"], queues=["mine"])
    with seated(browser, service, secret=made.secret) as seat:
        seat.go("/jobs")
        assert shown(seat) == {mine}
        assert "Ada" not in seat.page.content()
        expect(seat.page.locator(f"#job-{mine}")).to_contain_text("arguments hidden")
        expect(seat.page.locator(".facets")).not_to_contain_text("theirs")
        expect(seat.page.locator("input[data-row]")).to_have_count(0)
        for selector in ("queue:theirs", "args.name:Ada"):
            answer = seat.go(f"/jobs?filter={selector}")
            assert answer is not None
            assert answer.status == 403
            expect(seat.page.get_by_role("heading", name="Not allowed")).to_be_visible()


def test_everybody_can_use_it(browser: Browser, service: Service) -> None:
    """Shows R35."""
    dead(service, "looks", "a long sentence " * 30, task="a.long." + "name_" * 20)
    service.enqueue("looks", delay=3600)
    with holding(service, "looks") as holder:
        service.enqueue("looks", args={"list": list(range(50))})
        holder.take()
    hold(browser, service, ["/jobs", "/jobs?filter=queue:looks"])
