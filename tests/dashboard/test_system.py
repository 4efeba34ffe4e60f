"""The page of the system: what the installation stands on, and what the doctor says to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from playwright.sync_api import expect

from support.browsing import seated
from tenure.admin import By
from tests.dashboard.acting import entry

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

OPS = By("ops", "cli")


def test_it_tells_schema_durability_tables_and_history(service: Service, browser: Browser) -> None:
    with seated(browser, service, scripts=False) as seat:
        seat.go("/system")
        main = seat.page.locator("main")
        expect(main).to_contain_text("fits this release")
        # The tests' server does not wait for its disk.
        expect(main).to_contain_text(
            "fsync is off, so a power failure can corrupt the whole database"
        )
        expect(
            seat.page.locator("[data-label=Table]", has_text="job_archive").first
        ).to_be_visible()
        expect(main).to_contain_text("keep_archive_days")
        expect(main).not_to_contain_text("postgres@")


def test_the_doctor_says_what_to_do(seat: Seat) -> None:
    seat.go("/system")
    worst = seat.page.locator(".findings li").first
    expect(worst.locator(".level")).to_have_text("error")
    expect(entry(seat, "fsync is off").locator(".todo")).to_contain_text("fsync")


def test_who_keeps_dead_rows_and_what_is_set_is_there_soon(service: Service, seat: Seat) -> None:
    seat.go("/system")
    expect(seat.page.locator("#live-state")).to_contain_text("live")
    with psycopg.connect(service.database, application_name="a-long-report") as connection:
        connection.execute("CREATE TEMP TABLE report AS SELECT 1")
        expect(seat.page.locator("[data-label=Holder]").first).to_contain_text("a-long-report")
        connection.rollback()
    service.admin.settings.set("lease", 45, OPS)
    row = seat.page.locator("tr", has=seat.page.locator("td:text-is('lease')"))
    expect(row.locator("b")).to_have_text("45")
