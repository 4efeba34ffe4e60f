"""Every page shows within two seconds what happens elsewhere, without being asked to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tenure.admin import By, JobRequest
from tests.dashboard.holding import dead, holding
from tests.timing import median, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.browsing import Seat
    from support.serving import Service

SOON = 2.0
# A page asks for news every second, and again after four times what the last answer took. Where an
# answer takes so long that two seconds are out of reach, the bar follows the machine.
NEWS = 1.0
TURNS = 8
ASK = """async () => {
    const began = performance.now();
    await (await fetch(location.href)).text();
    return (performance.now() - began) / 1000;
}"""
OPS = By("ops", "cli", "first")


def _due(service: Service, n: int) -> str:
    service.enqueue("one-more")
    due = service.admin.overview().numbers.due.value
    return f".numbers a[href$='state:queued'] b:text-is('{due}')"


def _queue(service: Service, n: int) -> str:
    service.enqueue(f"row-{n}")
    return f"[data-entry]:has-text('row-{n}')"


def _paused_queue(service: Service, n: int) -> str:
    service.admin.queues.pause("one", By("ops", "cli", f"reason-{n}"))
    return f".why:has-text('reason-{n}')"


def _job(service: Service, n: int) -> str:
    return f"#job-{service.enqueue('listed')}"


def _held_job(service: Service, n: int) -> str:
    steer = service.admin.jobs.resume if n % 2 else service.admin.jobs.hold
    steer([1], OPS)
    return f".state:text-is('{'queued' if n % 2 else 'held'}')"


def _schedule(service: Service, n: int) -> str:
    service.admin.schedules.create(f"tick-{n}", "t", OPS, every=3600)
    return f"[data-entry]:has-text('tick-{n}')"


def _paused_schedule(service: Service, n: int) -> str:
    service.admin.schedules.pause("one", By("ops", "cli", f"reason-{n}"))
    return f".why:has-text('reason-{n}')"


def _worker(service: Service, n: int) -> str:
    service.enqueue("manned")
    with holding(service, "manned", f"hand-{n}") as holder:
        holder.take()
    return f"[data-entry]:has-text('hand-{n}')"


def _dead_letter(service: Service, n: int) -> str:
    dead(service, "dying", f"cannot {'abcdefghijkl'[n]}")
    return f"[data-entry]:has-text('cannot {'abcdefghijkl'[n]}')"


def _operation(service: Service, n: int) -> str:
    started = service.admin.operations.start("cancel", "state:scheduled queue:many", OPS, rate=1)
    return f"[data-entry]:has(a[href$='/operations/{started.id}'])"


def _paused_operation(service: Service, n: int) -> str:
    steer = service.admin.operations.resume if n % 2 else service.admin.operations.pause
    steer(1, OPS)
    return f"#operation-state:text-is('{'running' if n % 2 else 'paused'}')"


def _audit(service: Service, n: int) -> str:
    service.admin.queues.limit(f"limited-{n}", 3, OPS)
    return f"[data-entry]:has-text('queue:limited-{n}')"


def _setting(service: Service, n: int) -> str:
    service.admin.settings.set("lease", 40 + n, OPS)
    return f"tr:has(td:text-is('lease')) b:text-is('{40 + n}')"


@pytest.fixture(scope="module", autouse=True)
def furnished(service: Service) -> None:
    """A job, a queue, a schedule and an operation to look at."""
    assert service.enqueue("one") == "1"
    service.admin.schedules.create("one", "t", OPS, every=3600)
    jobs = [JobRequest(task="later", args={}, queue="many", delay=3600) for _ in range(900)]
    service.admin.jobs.enqueue_many(jobs, OPS)
    assert (
        service.admin.operations.start("cancel", "state:scheduled queue:many", OPS, rate=1).id == 1
    )


@pytest.mark.timing
@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/", _due),
        ("/queues", _queue),
        ("/queues/one", _paused_queue),
        ("/jobs?filter=queue:listed", _job),
        ("/jobs/1", _held_job),
        ("/schedules", _schedule),
        ("/schedules/one", _paused_schedule),
        ("/workers", _worker),
        ("/failed?queue=dying", _dead_letter),
        ("/operations", _operation),
        ("/operations/1", _paused_operation),
        ("/audit", _audit),
        ("/system", _setting),
    ],
)
def test_a_change_is_on_the_page_within_two_seconds(
    service: Service, seat: Seat, path: str, change: Callable[[Service, int], str]
) -> None:
    """Shows R35."""
    seat.go(path)
    expect(seat.page.locator("#live-state")).to_have_attribute("data-state", "live")
    numbers = itertools.count()

    def late() -> float:
        selector = change(service, next(numbers))
        waited = seconds(lambda: seat.page.wait_for_selector(selector))
        answer: float = seat.page.evaluate(ASK)
        return waited - max(SOON, NEWS + TURNS * answer)

    assert median(late) <= 0
