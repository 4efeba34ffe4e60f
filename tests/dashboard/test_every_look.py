"""Every page as different people have it: in the dark, on a phone, by a program that reads it out;
and each form with its twin in the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from support.browsing import PHONE, seated
from tenure.admin import By
from tenure.server.dashboard.views import queues, schedules, workers
from tenure.server.routes import installation
from tenure.server.routes import schedules as api_schedules
from tests.dashboard.looks import hold

if TYPE_CHECKING:
    from fastapi import APIRouter
    from playwright.sync_api import Browser

    from support.serving import Service

OPS = By("token:3:ana", "page", "the mail provider does not answer")
LONG = "a-queue-with-a-name-that-is-longer-than-a-phone-is-wide-and-then-some-more"
PATHS = (
    "/queues",
    f"/queues/{LONG}",
    "/workers",
    "/schedules",
    "/schedules/reports/nightly",
    "/audit",
    "/system",
)


@pytest.fixture(scope="module")
def filled(service: Service) -> Service:
    """Something on every page."""
    admin = service.admin
    job_id = service.enqueue(LONG, max_attempts=1)
    with service.caller() as caller:
        me = {"name": "here", "host": "box", "language": "bash", "version": "1"}
        wanted = {"queues": [LONG], "worker": me}
        [work] = caller.post("/v1/leases:acquire", json=wanted).json()["jobs"]
        error = {"type": "TimeoutError", "message": "no answer from " + "smtp." * 30}
        caller.post("/v1/leases:fail", json={"lease": work["lease"], "error": error})
        service.enqueue(LONG)
        caller.post("/v1/leases:acquire", json=wanted)
    assert job_id
    admin.queues.limit(LONG, 5, OPS)
    admin.queues.pause(LONG, OPS, until=datetime.now(UTC) + timedelta(hours=1))
    admin.schedules.create("reports/nightly", "t", OPS, cron="30 2 * * *", queue=LONG)
    admin.schedules.create("held-back", "t", OPS, every=60, queue=LONG)
    admin.schedules.pause("held-back", OPS)
    return service


def test_pages_are_accessible_and_fit_a_phone(filled: Service, browser: Browser) -> None:
    hold(browser, filled, PATHS)


def test_no_form_runs_out_of_a_phone(filled: Service, browser: Browser) -> None:
    too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with seated(browser, filled, size=PHONE) as seat:
        for path in PATHS:
            seat.go(path)
            for word in seat.page.locator("details.action > summary").all()[:3]:
                word.click()
            assert seat.page.evaluate(too_wide) <= 0, path


@pytest.mark.parametrize(
    ("room", "api"),
    [(queues, installation), (workers, installation), (schedules, api_schedules)],
    ids=["queues", "workers", "schedules"],
)
def test_every_form_has_its_twin_in_the_api(room: object, api: object) -> None:
    assert {f"/v1{path}" for path in _posts(room)} <= _posts(api)


def _posts(room: object) -> set[str]:
    router: APIRouter = room.router  # type: ignore[attr-defined] # every room has one
    return {one.path for one in router.routes if "POST" in one.methods}  # type: ignore[attr-defined]
