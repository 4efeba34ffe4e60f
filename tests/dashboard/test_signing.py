"""Signing in and out by a browser, and what is refused from elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from playwright.sync_api import expect

from support.browsing import seated
from support.serving import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_token_without_access_is_refused(browser: Browser, service: Service) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.go("/sign-in")
        seat.page.get_by_label("Access token").fill("tnr_nothing")
        seat.page.keyboard.press("Enter")
        expect(seat.page.get_by_role("alert")).to_be_visible()
        assert seat.context.cookies() == []


def test_a_one_time_link_signs_in_once(browser: Browser, service: Service) -> None:
    """The code is neither in the address bar afterwards nor in a request's path."""
    [token, *_] = service.admin.tokens.list(active=True)
    code = service.admin.sessions.create_code(token.id, OPS).secret
    with seated(browser, service, signed_in=False) as seat:
        paths: list[str] = []
        seat.page.on("request", lambda request: paths.append(request.url))
        seat.go(f"/sign-in#{code}")
        expect(seat.page.locator("header nav")).to_be_visible()
        assert code not in seat.page.url
        assert not [path for path in paths if code in path.partition("#")[0]]
    with seated(browser, service, signed_in=False) as seat:
        seat.go(f"/sign-in#{code}")
        expect(seat.page.get_by_role("alert")).to_contain_text("works once, within a minute")
    late = service.admin.sessions.create_code(token.id, OPS, expires_in=0.001).secret
    assert httpx.post(f"{service.url}/sign-in", data={"token": late}).status_code == 401


def test_a_token_in_the_address_does_not_sign_in(browser: Browser, service: Service) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.go(f"/sign-in#{service.secret}")
        expect(seat.page.get_by_label("Access token")).to_have_value("")
        assert seat.context.cookies() == []


def test_the_cookie_is_an_opaque_id_that_signing_out_ends_at_the_server(
    browser: Browser, service: Service
) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.sign_in()
        [cookie] = seat.context.cookies()
        port = urlsplit(service.url).port
        assert cookie["name"] == f"tenure_{port}"
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert cookie["expires"] == -1
        assert cookie["value"] not in service.secret
        assert service.secret not in cookie["value"]
        bearer = {"Authorization": f"Bearer {cookie['value']}"}
        assert httpx.get(f"{service.url}/v1/overview", headers=bearer).status_code == 401
        assert seat.page.evaluate("document.cookie") == ""
        seat.page.locator("details.who summary").click()
        seat.page.get_by_role("button", name="Sign out").click()
        expect(seat.page.get_by_label("Access token")).to_be_visible()
        assert seat.context.cookies() == []
    stolen = {cookie["name"]: cookie["value"]}
    assert httpx.get(f"{service.url}/", cookies=stolen).status_code == 401
    row = service.admin.audit.search(action="session.sign_out").rows[0]
    assert (row.address, row.source) == ("127.0.0.1", "page")


def _age(service: Service, session: int, column: str, hours: float) -> None:
    """Let time pass for one session: what it did last is that much longer ago."""
    with psycopg.connect(service.database) as connection:
        connection.execute(
            f"UPDATE tenure.dashboard_session SET {column} = {column} - %s WHERE id = %s".encode(),
            (timedelta(hours=hours), session),
        )


@pytest.mark.parametrize(("column", "hours"), [("seen_at", 1.01), ("expires_at", 12.01)])
def test_an_idle_or_old_session_ends(
    browser: Browser, service: Service, column: str, hours: float
) -> None:
    with seated(browser, service, signed_in=False) as seat:
        seat.sign_in()
        [session, *_] = service.admin.sessions.list(active=True)
        _age(service, session.id, column, hours - 0.1)
        assert service.admin.sessions.list(session=session.id)[0].state == "active"
        _age(service, session.id, column, 0.2)
        assert service.admin.sessions.list(session=session.id)[0].state == "expired"
        # The open page finds out by itself, within the two seconds that a server remembers.
        expect(seat.page.get_by_label("Access token")).to_be_visible()
        expect(seat.page.locator("header nav")).to_have_count(0)


def test_a_page_that_refreshes_itself_does_not_keep_a_session_alive(service: Service) -> None:
    with service.browser() as browser:
        browser.get("/")
        [session, *_] = service.admin.sessions.list(active=True)
        _age(service, session.id, "seen_at", 0.5)
        before = service.admin.sessions.list(session=session.id)[0].seen_at
        assert browser.get("/", headers={"HX-Request": "true"}).status_code == 200
        assert service.admin.sessions.list(session=session.id)[0].seen_at == before


def test_a_revoked_session_ends_in_its_browser(browser: Browser, service: Service) -> None:
    with (
        seated(browser, service, signed_in=False) as victim,
        seated(browser, service, signed_in=False) as admin,
    ):
        victim.sign_in()
        [session, *_] = service.admin.sessions.list(active=True)
        admin.sign_in()
        admin.page.locator("details.who summary").click()
        admin.page.get_by_role("link", name="Sessions").click()
        row = admin.page.locator(f"#s-{session.id}")
        expect(row).to_contain_text("127.0.0.1")
        row.locator("summary").click()
        row.get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("ended")
        assert admin.faults() == []
        expect(victim.page.get_by_label("Access token")).to_be_visible()
    [change] = service.admin.audit.search(
        target=f"session:{session.id}", action="session.revoke"
    ).rows
    assert change.actor.endswith(":first")


def test_a_user_without_admin_sees_and_ends_only_sessions_of_their_token(service: Service) -> None:
    own = service.admin.tokens.create("ana", OPS, role="viewer").secret
    with service.browser() as other, service.browser(own) as ana, service.browser(own) as phone:
        assert other.get("/").status_code == 200
        newest = service.admin.sessions.list(active=True, count=3)
        phones, anas, others = (row.id for row in newest)
        page = ana.get("/sessions").text
        assert f's-{anas}"' in page
        assert f's-{phones}"' in page
        assert f's-{others}"' not in page
        form = {"mark": service.mark(ana)}
        assert ana.post(f"/sessions/{others}:revoke", data=form).status_code == 404
        assert ana.post(f"/sessions/{phones}:revoke", data=form).status_code == 303
        phone.cookies.clear()
    assert service.admin.sessions.list(session=others, token=0)[0].state == "active"


def test_a_link_on_another_site_leads_to_the_page(browser: Browser, service: Service) -> None:
    """The browser withholds the cookie from such a request, and sends it with the next one."""
    with (
        elsewhere(f'<a href="{service.url}/queues?x=1">queues</a>') as foreign,
        seated(browser, service, signed_in=False) as seat,
    ):
        seat.sign_in()
        seat.page.goto(foreign)
        seat.page.get_by_role("link", name="queues").click()
        expect(seat.page.get_by_role("heading", name="Queues", exact=True)).to_be_visible()
        expect(seat.page).to_have_url(f"{service.url}/queues?x=1")


@contextmanager
def elsewhere(page: str) -> Iterator[str]:
    """A page of another site on this machine: for a browser, localhost is not 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()


def test_it_works_without_scripts(browser: Browser, service: Service) -> None:
    with seated(browser, service, scripts=False, signed_in=False) as seat:
        seat.sign_in()
        seat.go("/queues")
        expect(seat.page.get_by_role("heading", name="Queues", exact=True)).to_be_visible()


@pytest.mark.parametrize("to", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test_redirects_stay_on_the_site(service: Service, to: str) -> None:
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
    with service.browser() as browser:
        answer = browser.post(path, data={"token": service.secret}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("mark", ["", "0" * 64])
def test_a_form_without_the_mark_of_the_session_is_refused(service: Service, mark: str) -> None:
    with service.browser() as browser:
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
    with service.browser() as browser:
        assert browser.get("/v1/queues").status_code == 401
        assert browser.post("/v1/queues/mail:pause").status_code == 401
