"""The Overview by a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from support.browsing import DESK, PHONE, seated
from support.serving import OPS
from tenure import Tenure
from tenure.testing import drain

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service

NUMBERS = (
    *("due", "running", "oldest due", "retrying", "completed today", "failed in 24 h"),
    "workers active",
)


def test_seven_numbers_that_lead_somewhere(seat: Seat) -> None:
    """Shows R35."""
    seat.go("/")
    numbers = seat.page.locator(".numbers a")
    assert [text.splitlines()[-1] for text in numbers.all_inner_texts()] == list(NUMBERS)
    hrefs = [one.get_attribute("href") for one in numbers.all()]
    assert all(href and href.startswith("/") for href in hrefs)


def test_attention_is_shown_and_so_is_an_all_clear(seat: Seat, service: Service) -> None:
    """Shows R35. A queue without workers is named by a sentence that links to it."""
    seat.go("/")
    words = seat.page.locator(".attention")
    expect(words).to_contain_text("No workers are live. Start one")
    expect(seat.page.locator("#live-state")).to_have_attribute("data-state", "live")
    job = service.enqueue("nobodys")
    sentence = words.get_by_text("Queue nobodys has 1 due job and no live worker")
    expect(sentence).to_be_visible()
    assert (sentence.get_attribute("href") or "").endswith("/queues/nobodys")
    with service.caller() as caller:
        caller.post(f"/v1/jobs/{job}:cancel")
    expect(words).to_contain_text("No workers are live. Start one")


def test_what_was_completed_last_has_its_duration_and_attempts(
    seat: Seat, service: Service
) -> None:
    """Shows R35."""
    app = Tenure(service.database)

    @app.task(name="greet")
    def greet() -> None: ...

    seat.go("/")
    handle = greet.enqueue()
    assert drain(app, queues=["default"]).completed == 1
    row = seat.page.locator(f"#completion-{handle.id}")
    expect(row).to_contain_text("greet")
    expect(row.locator("td[data-label=Attempt]")).to_have_text("1")
    expect(row.locator("td[data-label='Run time']")).not_to_have_text("")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_it_fits_and_anybody_can_read_it(
    browser: Browser, service: Service, theme: Literal["light", "dark"], size: tuple[int, int]
) -> None:
    with seated(browser, service, size=size, theme=theme) as seat:
        seat.go("/")
        assert seat.faults() == []
        assert seat.page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_without_scripts_there_is_a_table_in_place_of_each_chart(
    browser: Browser, service: Service
) -> None:
    with seated(browser, service, scripts=False) as seat:
        seat.go("/")
        assert seat.page.locator("table[data-chart]").count() == 3
        assert seat.page.locator(".attention").is_visible()


def test_keys_lead_to_pages_and_to_the_search(seat: Seat) -> None:
    seat.go("/")
    seat.page.keyboard.press("g")
    seat.page.keyboard.press("q")
    # Until the new page is loaded: keys pressed before that are nobody's.
    seat.page.wait_for_url(f"{seat.service.url}/queues")
    seat.page.keyboard.press("/")
    expect(seat.page.locator(".search input")).to_be_focused()
    seat.page.keyboard.press("Escape")
    seat.page.keyboard.press("?")
    expect(seat.page.locator("dialog")).to_be_visible()


def test_focus_and_what_is_open_survive_an_update(seat: Seat, service: Service) -> None:
    seat.go("/")
    table = seat.page.locator("figure details").first
    table.locator("summary").click()
    due = seat.page.locator(".numbers a").first
    due.focus()
    before = due.inner_text()
    job = service.enqueue("focus")
    expect(due).not_to_have_text(before)
    expect(due).to_be_focused()
    assert table.get_attribute("open") is not None
    with service.caller() as caller:
        caller.post(f"/v1/jobs/{job}:cancel")


def test_who_may_see_some_queues_is_shown_those_alone(browser: Browser, service: Service) -> None:
    """Nothing is told of the rest, the Overview's figures neither."""
    jobs = [service.enqueue("mine"), service.enqueue("others")]
    made = service.admin.tokens.create("some", OPS, scopes=["read"], queues=["mine"])
    with seated(browser, service, secret=made.secret) as seat:
        seat.go("/")
        text = seat.page.locator("main").inner_text()
        assert "mine" in text
        assert "others" not in text
    with service.caller() as caller:
        for job in jobs:
            caller.post(f"/v1/jobs/{job}:cancel")
