"""The pages of schedules: next run, results, and actions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.processes import wait_for
from tenure.admin import By
from tenure.types import TickReason
from tests.dashboard.acting import act, entry, given, noted

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

OPS = By("ops", "cli", "holidays")


def missed(service: Service, name: str) -> None:
    """An hourly schedule that was not fired for three hours."""
    schedules = service.admin.schedules
    schedules.create(name, "t", OPS, every=3600, queue="timed", missed="skip")
    with psycopg.connect(service.database, autocommit=True) as connection:
        connection.execute(
            "UPDATE tenure.schedule SET next_at = next_at - interval '3 hours', "
            "created_at = created_at - interval '1 day' WHERE name = %s",
            (name,),
        )
    engine = service.admin._engine
    engine.run(engine.store.ticks.fire())


def test_schedules_are_described_with_their_results(service: Service, seat: Seat) -> None:
    """Shows R28."""
    service.admin.schedules.create(
        "weekday", "t", OPS, cron="0 9 * * 1-5", timezone="Europe/Berlin", queue="timed"
    )
    missed(service, "gaps")
    seat.go("/schedules")
    row = entry(seat, "weekday")
    expect(row.locator("[data-label=When]")).to_contain_text("At 09:00 on Monday through Friday")
    expect(row.locator("[data-label=When]")).to_contain_text("Europe/Berlin")
    expect(row.locator("[data-label='Next run'] time")).to_contain_text("in ")
    expect(row.locator("[data-label='Last result']")).to_have_text("no runs yet")
    strip = entry(seat, "gaps").locator("svg.strip")
    expect(strip.locator(".skipped").first).to_be_visible()
    expect(strip.locator("title").first).to_contain_text("no worker fired it in time")


def test_next_runs_are_shown_in_both_zones_with_clock_changes(service: Service, seat: Seat) -> None:
    """Shows R25."""
    service.admin.schedules.create(
        "sundays/spring", "t", OPS, cron="30 2 * 3 0", timezone="Europe/Berlin", queue="timed"
    )
    seat.go("/schedules/sundays/spring")
    expect(seat.page.locator("h2", has_text="Next 10 runs")).to_be_visible()
    table = seat.page.locator("table").first
    expect(table.locator("tbody tr")).to_have_count(10)
    expect(table.locator(".warn").first).to_contain_text("clocks change on this day")
    expect(table).to_contain_text("02:00 becomes 03:00")
    expect(table).to_contain_text("+0100")


def test_a_change_elsewhere_is_on_the_page_soon(service: Service, seat: Seat) -> None:
    service.admin.schedules.create("moving", "t", OPS, every=3600, queue="timed")
    seat.go("/schedules/moving")
    expect(seat.page.locator("#live-state")).to_contain_text("live")
    service.admin.schedules.pause("moving", OPS)
    expect(seat.page.locator(".why")).to_contain_text("by ops: “holidays”")


@pytest.mark.parametrize("scripts", [True, False])
def test_schedule_is_paused_resumed_and_run(
    service: Service, browser: Browser, *, scripts: bool
) -> None:
    """Shows R28."""
    name = f"steered/{scripts}"
    service.admin.schedules.create(name, "t", OPS, every=3600, queue="timed")
    with seated(browser, service, scripts=scripts) as seat:
        seat.go("/schedules")
        act(entry(seat, name), "Pause", reason="deploy", minutes="15")
        row = service.admin.schedules.get(name)
        assert row is not None
        assert row.paused_reason == "deploy"
        act(seat.page.locator("main"), "Resume", reason="done")
        assert noted(service, f"schedule:{name}").source == "page"
        act(seat.page.locator("main"), "Run now", reason="by hand")
        assert "is enqueued" in given(seat)
        change = noted(service, f"schedule:{name}")
        assert (change.action, change.source, change.reason) == ("schedule.run", "page", "by hand")


def test_a_run_that_was_missed_is_made_up_for(service: Service, seat: Seat) -> None:
    """Shows R28."""
    missed(service, "late")
    seat.go("/schedules/late")
    act(entry(seat, "no worker fired it in time"), "Enqueue job", reason="it matters")
    assert given(seat).startswith("1 run has no job. Operation")
    assert noted(service, "schedule:late").source == "page"

    def made_up() -> bool:
        ticks = service.admin.schedules.ticks("late")
        return sum(tick.reason is TickReason.BACKFILL for tick in ticks) == 1

    assert wait_for(made_up, 20)
    expect(seat.page.locator("main")).to_contain_text("by a backfill")


def test_a_backfill_is_counted_before_it_is_begun(service: Service, seat: Seat) -> None:
    missed(service, "long-ago")
    hour = datetime.now(UTC).replace(minute=0, second=0)
    since = f"{hour - timedelta(hours=5):%Y-%m-%dT%H:%M:%S}"
    until = f"{hour - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
    seat.go("/schedules/long-ago")
    act(seat.page.locator("main"), "Backfill", button="Count runs", since=since, until=until)
    assert "5 runs have no job in that time. Nothing has changed." in given(seat)
    act(seat.page.locator("main"), "Backfill", since=since, until=until, reason="all of it")
    assert "5 runs have no job. Operation" in given(seat)


def test_who_may_only_look_sees_no_form(service: Service, browser: Browser) -> None:
    missed(service, "looked-at")
    secret = service.admin.tokens.create("looker", OPS, scopes=["read"], queues=["timed"]).secret
    with seated(browser, service, secret=secret) as seat:
        seat.go("/schedules/looked-at")
        expect(seat.page.locator("details.action")).to_have_count(0)
    secret = service.admin.tokens.create("other", OPS, scopes=["read"], queues=["other"]).secret
    with seated(browser, service, secret=secret) as seat:
        refused = seat.go("/schedules/looked-at")
        assert refused is not None
        assert refused.status == 404
