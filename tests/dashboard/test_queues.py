"""The pages of queues: what they show, what they do, who may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.processes import wait_for
from tenure.admin import By
from tests.dashboard.acting import act, entry, given, noted

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

OPS = By("ops", "cli", "failover")


def test_a_queue_is_shown_with_what_waits_and_what_is_set(service: Service, seat: Seat) -> None:
    """Shows R35."""
    for _ in range(3):
        service.enqueue("shown")
    service.admin.queues.pause("shown", OPS, until=datetime.now(UTC) + timedelta(hours=1))
    service.admin.queues.limit("shown", 5, OPS)
    seat.go("/queues")
    row = entry(seat, "shown")
    expect(row.locator("[data-label=Due]")).to_have_text("3")
    expect(row.locator("[data-label=State]")).to_contain_text("by ops: “failover”")
    expect(row.locator("[data-label=Running]")).to_contain_text("0 of 5")
    row.get_by_role("link", name="shown").click()
    expect(seat.page.get_by_role("heading", name="shown")).to_be_visible()
    expect(seat.page.locator(".story")).to_contain_text("3 due")
    expect(seat.page.locator(".story")).to_contain_text("No live worker serves this queue")


def test_a_change_elsewhere_is_on_the_page_soon(service: Service, seat: Seat) -> None:
    """Shows R35."""
    service.enqueue("moving")
    seat.go("/queues/moving")
    expect(seat.page.locator("#live-state")).to_contain_text("live")
    service.admin.queues.pause("moving", OPS)
    expect(seat.page.locator(".why")).to_contain_text("paused by ops")
    service.enqueue("moving")
    expect(seat.page.locator(".story")).to_contain_text("2 due")


@pytest.mark.parametrize("scripts", [True, False])
def test_queue_is_paused_resumed_and_limited(
    service: Service, browser: Browser, *, scripts: bool
) -> None:
    """Each action is in the audit with who, why, and that it was done by a page."""
    name = f"steered/{scripts}"
    service.enqueue(name)
    with seated(browser, service, scripts=scripts) as seat:
        # How deep queues are is asked for all who look within a while.
        assert wait_for(
            lambda: seat.go("/queues") is not None and entry(seat, name).count() == 1, 20
        )
        act(entry(seat, name), "Pause", minutes="60", reason="deploy")
        assert given(seat) == f"Queue {name} is paused."
        [row] = [one for one in service.admin.queues.list() if one.name == name]
        assert row.paused_reason == "deploy"
        assert row.paused_until is not None
        assert row.paused_until > datetime.now(UTC) + timedelta(minutes=59)
        seat.go("/queues")
        act(entry(seat, name), "Resume", reason="done")
        assert noted(service, f"queue:{name}").action == "queue.resume"
        act(seat.page.locator("main"), "Limit", button="Set limit", max_running="7")
        assert given(seat) == f"Queue {name} runs at most 7 jobs at once."
        change = noted(service, f"queue:{name}")
        assert (change.source, change.action) == ("page", "queue.limit")
        assert change.actor.endswith(":first")
        act(seat.page.locator("main"), "Limit", button="Set limit", max_running="")
        assert [one.max_running for one in service.admin.queues.list() if one.name == name] == [
            None
        ]


def test_all_queues_are_paused_at_once(service: Service, seat: Seat) -> None:
    service.enqueue("one-of-all")
    seat.go("/queues")
    act(seat.page.locator("main"), "Pause all", reason="the provider is down")
    expect(seat.page.locator(".why")).to_contain_text("the provider is down")
    seat.go("/queues/one-of-all")
    expect(seat.page.locator(".why")).to_contain_text("All queues are paused by first")
    seat.go("/queues")
    act(seat.page.locator("main"), "Resume all")
    assert noted(service, "queue:*").action == "queue.resume"


def test_the_keyboard_is_enough(service: Service, seat: Seat) -> None:
    service.enqueue("a-keyed")
    seat.go("/audit")
    seat.page.keyboard.press("g")
    seat.page.keyboard.press("q")
    seat.page.wait_for_url(f"{service.url}/queues")
    expect(entry(seat, "a-keyed")).to_be_visible()
    seat.page.keyboard.press("j")
    expect(seat.page.locator("a:focus")).to_have_text("a-keyed")
    seat.page.keyboard.press("p")
    seat.page.keyboard.type("by hand")
    seat.page.keyboard.press("Enter")
    expect(seat.page.locator("#status")).to_contain_text("paused")
    assert noted(service, "queue:a-keyed").reason == "by hand"


def test_who_may_only_look_sees_no_form_and_others_queues_not_at_all(
    service: Service, browser: Browser
) -> None:
    service.enqueue("mine")
    service.enqueue("theirs")
    secret = service.admin.tokens.create("looker", OPS, scopes=["read"], queues=["mine"]).secret
    with seated(browser, service, secret=secret) as seat:
        seat.go("/queues")
        expect(entry(seat, "mine")).to_be_visible()
        expect(seat.page.locator("main")).not_to_contain_text("theirs")
        expect(seat.page.locator("details.action")).to_have_count(0)
        refused = seat.go("/queues/theirs")
        assert refused is not None
        assert refused.status == 403
        expect(seat.page.get_by_role("heading")).to_contain_text("does not allow")


def test_unknown_queue_is_reported(seat: Seat) -> None:
    seat.go("/queues/un/known")
    expect(seat.page.get_by_role("heading", name="Unknown queue")).to_be_visible()


def test_where_nothing_is_yet_a_page_says_what_would_be(service: Service, browser: Browser) -> None:
    secret = service.admin.tokens.create("new", OPS, scopes=["read"], queues=["none"]).secret
    with seated(browser, service, secret=secret, scripts=False) as seat:
        for path in ("/queues", "/workers", "/schedules"):
            seat.go(path)
            expect(seat.page.locator(".nothing h2")).to_contain_text("yet")


@pytest.mark.parametrize("minutes", ["-1", "soon", "٣", "9" * 9])
def test_invalid_form_is_refused_with_the_reason(service: Service, minutes: str) -> None:
    with service.browser() as browser:
        answer = browser.post(
            "/queues/odd:pause",
            data={"mark": service.mark(browser), "minutes": minutes},
            headers={"Accept": "text/html"},
        )
    assert answer.status_code == 422
    assert "number of minutes" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/queues/odd:pause",
        "/queues/odd:resume",
        "/queues/odd:limit",
        "/workers/00000000-0000-0000-0000-000000000001:drain",
        "/schedules/odd:pause",
        "/schedules/odd:resume",
        "/schedules/odd:run",
        "/schedules/odd:backfill",
    ],
)
def test_a_form_without_its_mark_is_refused(service: Service, path: str) -> None:
    with service.browser() as browser:
        assert browser.post(path, data={"reason": "forged"}).status_code == 403
