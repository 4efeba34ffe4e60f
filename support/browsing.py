"""A real browser at a real server: signed in, watched for errors, held to accessibility."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playwright.sync_api import expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page, Response, StorageState

    from support.serving import Service

AXE = Path(".cache/axe/node_modules/axe-core/axe.min.js")
DESK = 1280, 800
PHONE = 390, 844
# Milliseconds until something counts as not there: far more than it takes on any machine. What is
# to be there soon is measured by `tests/dashboard/test_live.py`.
WITHIN = 30_000
# A refused page is one of ours, and the browser says so on its console.
_REFUSED = "Failed to load resource"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, built without a screen: half of the processor time of the other."""
    found = shutil.which("chromium-headless-shell")
    if found is None:
        raise RuntimeError(
            "there is no Chromium; install it: apt-get install chromium-headless-shell"
        )
    expect.set_options(timeout=WITHIN)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seat:
    """A user at a browser. Errors in the browser are collected in `wrong`."""

    service: Service
    context: BrowserContext
    page: Page
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Response | None:
        """Open a page of the server."""
        return self.page.goto(self.service.url + path)

    def sign_in(self, secret: str | None = None) -> None:
        """Sign in with this access token (default: the first one)."""
        self.go("/sign-in")
        self.page.get_by_label("Access token").fill(secret or self.service.secret)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_selector("header nav")

    def faults(self) -> list[str]:
        """What axe-core finds on this page that is serious or critical."""
        self.page.evaluate(_axe())
        found: dict[str, Any] = self.page.evaluate(
            "async () => await axe.run(document, {resultTypes: ['violations']})"
        )
        return [
            f"{one['id']}: {one['help']}: {json.dumps([node['target'] for node in one['nodes']])}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]


@cache
def _axe() -> str:
    if not AXE.exists():
        raise RuntimeError("axe-core is not here; fetch it: just axe")
    return AXE.read_text()


# By the access token: who has signed in once is let in again by what the browser kept.
_kept: dict[str, StorageState] = {}


@contextmanager
def seated(
    browser: Browser,
    service: Service,
    *,
    size: tuple[int, int] = DESK,
    theme: Literal["light", "dark"] = "light",
    scripts: bool = True,
    secret: str | None = None,
    signed_in: bool = True,
) -> Iterator[Seat]:
    """A signed-in user with an empty page; afterwards nothing may have gone wrong in
    their browser."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
        storage_state=_signed_in(browser, service, secret) if signed_in else None,
    )
    with _watched(context, service) as seat:
        yield seat


def _signed_in(browser: Browser, service: Service, secret: str | None) -> StorageState:
    secret = secret or service.secret
    if secret not in _kept:
        with _watched(browser.new_context(), service) as seat:
            seat.sign_in(secret)
            _kept[secret] = seat.context.storage_state()
    return _kept[secret]


@contextmanager
def _watched(context: BrowserContext, service: Service) -> Iterator[Seat]:
    context.set_default_timeout(WITHIN)
    page = context.new_page()
    seat = Seat(service, context, page)
    page.on("pageerror", lambda error: seat.wrong.append(str(error)))
    page.on(
        "console",
        lambda message: (
            seat.wrong.append(message.text)
            if message.type in ("error", "warning") and _REFUSED not in message.text
            else None
        ),
    )
    try:
        yield seat
        if seat.wrong:
            raise AssertionError(f"the browser complains: {seat.wrong}")
    finally:
        context.close()
