"""What the tests of pages do again and again: a form behind its word, and what the audit says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from support.browsing import Seat
    from support.serving import Service
    from tenure.types import AuditRow


def entry(seat: Seat, text: str) -> Locator:
    """The row of a table that has this text."""
    return seat.page.locator("[data-entry]", has_text=text).first


def act(within: Locator, word: str, *, button: str = "", **fields: str) -> None:
    """Open the form behind a word, fill it in and send it."""
    action = within.locator("details.action", has=within.page.locator(f"summary:text-is('{word}')"))
    action.locator("summary").click()
    for name, text in fields.items():
        field = action.locator(f"[name={name}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(text)
        else:
            field.fill(text)
    action.get_by_role("button", name=button or word, exact=True).click()


def given(seat: Seat) -> str:
    """What the page says of what was done."""
    return seat.page.locator("#status").inner_text()


def noted(service: Service, target: str) -> AuditRow:
    """The last thing that was done to a target."""
    return service.admin.audit.list(target, count=1)[0]
