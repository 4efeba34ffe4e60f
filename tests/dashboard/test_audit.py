"""The page of the audit: found by any of it, taken away as NDJSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from support.browsing import seated
from tenure.admin import By
from tests.dashboard.acting import entry

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

ANA = By("token:9:ana", "page", "failover")
OPS = By("ops", "cli")


def test_a_change_is_shown_with_what_is_different(service: Service, seat: Seat) -> None:
    service.admin.queues.limit("changed", 3, OPS)
    service.admin.queues.limit("changed", 8, ANA)
    seat.go("/audit?target=queue:changed")
    row = entry(seat, "ana")
    expect(row.locator("[data-label='Before → after']")).to_have_text("max_running 3 → 8")
    expect(row.locator("[data-label=Source]")).to_have_text("page")
    expect(row.locator("[data-label=Reason]")).to_have_text("failover")
    row.get_by_role("link", name="queue:changed").click()
    expect(seat.page.get_by_role("heading", name="changed")).to_be_visible()


def test_a_change_elsewhere_is_on_the_page_soon(service: Service, seat: Seat) -> None:
    seat.go("/audit")
    expect(seat.page.locator("#live-state")).to_contain_text("live")
    service.admin.queues.limit("just-now", 3, OPS)
    expect(entry(seat, "queue:just-now")).to_be_visible()


def test_it_is_found_by_any_of_it_without_scripts_too(service: Service, browser: Browser) -> None:
    service.admin.queues.limit("sought", 3, ANA)
    service.admin.queues.resume("sought", OPS)
    job_id = service.enqueue("sought")
    with seated(browser, service, scripts=False) as seat:
        seat.go("/audit")
        expect(seat.page.locator("main")).not_to_contain_text(f"job:{job_id}")
        seat.page.get_by_label("By", exact=True).fill("ana")
        seat.page.get_by_label("Source").select_option("page")
        seat.page.get_by_label("Action").fill("queue")
        seat.page.get_by_role("button", name="Search").click()
        expect(entry(seat, "queue:sought")).to_be_visible()
        expect(seat.page.locator("main")).not_to_contain_text("queue.resume")
        seat.page.get_by_label("By", exact=True).fill("unknown user")
        seat.page.get_by_role("button", name="Search").click()
        expect(seat.page.get_by_role("heading", name="No changes match")).to_be_visible()
        seat.page.get_by_role("link", name="Clear").click()
        seat.page.get_by_label("Include enqueued jobs").check()
        seat.page.get_by_role("button", name="Search").click()
        expect(seat.page.locator("main")).to_contain_text(f"job:{job_id}")


def test_it_is_gone_through_page_by_page(service: Service, seat: Seat) -> None:
    for n in range(101):
        service.admin.queues.limit("paged", n, OPS)
    seat.go("/audit?target=queue:paged")
    expect(seat.page.locator("tbody tr")).to_have_count(100)
    seat.page.get_by_role("link", name="Older").click()
    expect(seat.page.locator("tbody tr")).to_have_count(1)
    seat.page.get_by_role("link", name="Newest").click()
    expect(seat.page.locator("tbody tr")).to_have_count(100)


def test_it_is_taken_away_as_ndjson(service: Service, seat: Seat) -> None:
    for n in range(205):
        service.admin.queues.limit("exported", n, OPS)
    seat.go("/audit?target=queue:exported")
    with seat.page.expect_download() as download:
        seat.page.get_by_role("link", name="Export as NDJSON").click()
    lines = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert [line["after"]["max_running"] for line in lines] == list(range(204, -1, -1))


def test_token_without_all_queues_is_refused_by_name(service: Service, browser: Browser) -> None:
    secret = service.admin.tokens.create("some", OPS, scopes=["read"], queues=["mail"]).secret
    with seated(browser, service, secret=secret) as seat:
        for path in ("/audit", "/system"):
            refused = seat.go(path)
            assert refused is not None
            assert refused.status == 403
            expect(seat.page.get_by_role("heading")).to_contain_text("does not allow")
    with service.browser(secret) as client:
        assert client.get("/audit/export").status_code == 403
