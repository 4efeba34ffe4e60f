"""The page of workers, with a real worker process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from support.processes import wait_for
from support.workers import Worker
from tests.dashboard.acting import act, entry, given, noted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.browsing import Seat
    from support.serving import Service
    from tenure.types import WorkerRow


def row(service: Service) -> WorkerRow:
    [one] = service.admin.workers.list()
    return one


@pytest.fixture
def worker(service: Service, tmp_path: Path) -> Iterator[Worker]:
    """A worker with one job that lasts longer than the test."""
    target = "tests.dashboard.handlers:app"
    with Worker(target, service.database, tmp_path, queues="slow", concurrency=4) as worker:
        service.enqueue("slow", task="hold_on", args={"seconds": 300})
        assert wait_for(lambda: bool(service.admin.jobs.leases()), 60), worker.log()
        assert wait_for(lambda: any(one.running for one in service.admin.workers.list()), 20)
        yield worker


def test_worker_is_shown_with_its_leases_and_drained(
    service: Service, worker: Worker, seat: Seat
) -> None:
    """Shows R30. Shows R31. Shows R35."""
    _shows_what_it_holds(service, seat)
    _shows_where_its_loop_stands_still(service, seat)
    _asks_it_to_end(service, seat)
    assert worker.alive


def _shows_what_it_holds(service: Service, seat: Seat) -> None:
    seat.go("/workers")
    shown = entry(seat, row(service).name)
    expect(shown.locator("[data-label=State]")).to_contain_text("active")
    expect(shown.locator("[data-label=Slots]")).to_contain_text("1 of 4")
    expect(shown.locator("[data-label=Worker]")).to_contain_text(f"pid {row(service).pid}")
    expect(shown.locator("[data-label=Memory]")).to_contain_text("MB")
    expect(shown.locator("[data-label=Leases]")).to_contain_text("hold_on")
    words = shown.locator(".words")
    before = words.inner_text()
    assert before.startswith("expires in")
    expect(words).not_to_have_text(before)
    seat.go("/queues/slow")
    expect(seat.page.locator(".story")).to_contain_text("1 worker serves this queue. 1 running")
    expect(entry(seat, "hold_on").locator(".words")).to_contain_text("expires in")


def _shows_where_its_loop_stands_still(service: Service, seat: Seat) -> None:
    seat.go("/workers")
    service.enqueue("slow", task="block", args={"seconds": 12})
    badge = seat.page.locator("details.blocked summary")
    expect(badge).to_contain_text("loop blocked")
    badge.click()
    expect(seat.page.locator("details.blocked pre")).to_contain_text("handlers.py")


def _asks_it_to_end(service: Service, seat: Seat) -> None:
    act(entry(seat, row(service).name), "Drain", reason="new release")
    assert "will drain" in given(seat)
    change = noted(service, f"worker:{row(service).id}")
    assert (change.action, change.source, change.reason) == ("worker.drain", "page", "new release")
    expect(seat.page.locator(".health")).to_have_text("draining")
    expect(seat.page.locator("details.action")).to_have_count(0)
    seat.go("/workers?show=idle")
    expect(seat.page.locator(".nothing")).to_contain_text("No idle workers")
