"""Three in the morning, on a phone: from the alert's link to a fixed queue in five taps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.browsing import PHONE, seated
from support.processes import wait_for
from support.serving import OPS
from support.workers import Worker
from tenure.admin import State
from tests.dashboard.holding import last_change
from tests.dashboard.program import import_list, render, send

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from support.serving import Service

MOST = 5


def test_failing_queue_is_found_paused_and_fixed_in_five_taps(
    browser: Browser, service: Service, tmp_path: Path
) -> None:
    """Shows R15, R35 and R36. The link is the alert's: the dead letters of the queue. A field that
    is written into counts as a tap."""
    admin, taps = service.admin, 0

    def tap(on: Locator) -> Locator:
        nonlocal taps
        taps += 1
        on.click()
        return on

    with Worker(
        "tests.dashboard.program:app",
        service.database,
        tmp_path,
        concurrency=1,
        processes=1,
        queues="mail",
    ):
        for n in range(6):
            admin.jobs.enqueue(send.name, {"to": "a" * n}, OPS, queue="mail", max_attempts=1)
        for n in range(2):
            admin.jobs.enqueue(render.name, {"page": n}, OPS, queue="mail", max_attempts=1)
        assert wait_for(lambda: len(admin.jobs.list(State.FAILED, queue="mail").jobs) == 8, 60)
        admin.jobs.enqueue(import_list.name, {"seconds": 60}, OPS, queue="mail")
        assert wait_for(lambda: bool(admin.jobs.list(State.RUNNING, queue="mail").jobs), 30)
        admin.jobs.enqueue(send.name, {"to": "late"}, OPS, queue="mail")

        with seated(browser, service, size=PHONE) as seat:
            seat.go("/failed?queue=mail")
            now = seat.page.locator("#queue-now")
            # What is late, who works on it, which error: without a tap.
            expect(now).to_contain_text(re.compile(r"1 due, the oldest for \d"))
            expect(now).to_contain_text(re.compile(r"served by .+ \(1 of 1\)"))
            hit = seat.page.locator("[data-entry]", has_text="TimeoutError: no answer from smtp-")
            expect(hit.locator('[data-label="Jobs"]')).to_have_text("6")

            form = seat.page.locator('[data-action="pause"]')
            tap(form.locator("summary"))
            tap(form.get_by_label("Reason")).fill("the provider is down")
            tap(form.locator("form button"))
            expect(now).to_contain_text("paused")

            tap(hit.locator('[data-action="retry"] a'))
            expect(seat.page.locator("#matched")).to_contain_text("6 jobs")
            expect(seat.page.get_by_label("Jobs per second")).to_have_value("50")
            tap(seat.page.get_by_role("button", name="Retry 6 jobs"))
            expect(seat.page.locator("#operation-state")).to_have_text("done")
            assert taps <= MOST

    left = admin.jobs.list(State.FAILED, queue="mail").jobs
    assert {job.task for job in left} == {render.name}
    change = last_change(service, "queue:mail")
    assert (change.source, change.reason) == ("page", "the provider is down")
