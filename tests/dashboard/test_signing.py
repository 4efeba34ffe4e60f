"""Signing in and out by a browser, and what is refused from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from support.browsing import seated

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import Seat
    from support.serving import Service


def test_without_an_access_token_there_is_a_page_to_sign_in(
    browser: Browser, service: Service
) -> None:
    with seated(browser, service, signed_in=False) as seat:
        answer = seat.go("/queues?flash=hello")
        assert answer is not None
        assert answer.status == 401
        seat.page.get_by_label("Access token").fill(service.secret)
        seat.page.keyboard.press("Enter")
        expect(seat.page).to_have_url(f"{service.url}/queues?flash=hello")


def test_a_token_that_is_not_let_in_is_told_so(browser: Browser, service: Service) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.go("/sign-in")
        seat.page.get_by_label("Access token").fill("tnr_nothing")
        seat.page.keyboard.press("Enter")
        expect(seat.page.get_by_role("alert")).to_be_visible()
        assert seat.context.cookies() == []


def test_the_first_token_signs_in_by_what_follows_the_hash(
    browser: Browser, service: Service
) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.go(f"/sign-in#{service.secret}")
        expect(seat.page.locator("header nav")).to_be_visible()
        assert service.secret not in seat.page.url


def test_no_script_can_read_the_token_and_signing_out_forgets_it(seat: Seat) -> None:
    seat.go("/")
    [cookie] = seat.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Lax"
    assert seat.page.evaluate("document.cookie") == ""
    seat.page.locator("details.who summary").click()
    seat.page.get_by_role("button", name="Sign out").click()
    expect(seat.page.get_by_label("Access token")).to_be_visible()
    assert seat.context.cookies() == []


def test_it_works_without_scripts(browser: Browser, service: Service) -> None:
    with seated(browser, service, scripts=False, signed_in=False) as seat:
        seat.sign_in()
        seat.go("/queues")
        expect(seat.page.get_by_role("heading", name="Queues")).to_be_visible()


@pytest.mark.parametrize("to", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test_nobody_is_led_elsewhere(service: Service, to: str) -> None:
    answer = httpx.post(f"{service.url}/sign-in", data={"token": service.secret, "to": to})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_a_form_elsewhere_is_refused(service: Service, path: str, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=service.url, cookies={"tenure": service.secret}) as browser:
        answer = browser.post(path, data={"token": service.secret}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("mark", ["", "0" * 64])
def test_a_form_without_the_mark_of_the_session_is_refused(service: Service, mark: str) -> None:
    with httpx.Client(base_url=service.url, cookies={"tenure": service.secret}) as browser:
        assert browser.post("/sign-out", data={"mark": mark}).status_code == 403


def test_no_link_from_elsewhere_speaks_on_our_pages(seat: Seat) -> None:
    """What is said after a form is sealed; other words are not shown."""
    seat.go("/queues?flash=Call+0900+666&seal=" + "0" * 64)
    expect(seat.page.locator("#status")).to_have_text("")


def test_a_page_that_is_not_there_keeps_the_bar(seat: Seat) -> None:
    answer = seat.go("/jobs/999999")
    assert answer is not None
    assert answer.status == 404
    expect(seat.page.locator("header nav")).to_be_visible()


def test_the_api_takes_no_cookie(service: Service) -> None:
    with httpx.Client(base_url=service.url, cookies={"tenure": service.secret}) as browser:
        assert browser.get("/v1/queues").status_code == 401
        assert browser.post("/v1/queues/mail:pause").status_code == 401
