"""Checks for every page: accessible, and it fits a phone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from support.browsing import DESK, PHONE, seated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playwright.sync_api import Browser

    from support.serving import Service

_SEATS: tuple[tuple[tuple[int, int], Literal["light", "dark"]], ...] = (
    (DESK, "light"),
    (DESK, "dark"),
    (PHONE, "light"),
)
_OVER = "document.documentElement.scrollWidth - window.innerWidth"


def hold(browser: Browser, service: Service, paths: Iterable[str]) -> None:
    """Each of the pages at a desk in light and dark, and on a phone."""
    paths = list(paths)
    for size, theme in _SEATS:
        with seated(browser, service, size=size, theme=theme) as seat:
            for path in paths:
                answer = seat.go(path)
                assert answer is not None
                assert answer.ok, (path, answer.status)
                # What is seen by colour alone or by a label alone differs by theme, not by size.
                if size == DESK:
                    assert seat.faults() == [], (path, theme)
                assert seat.page.evaluate(_OVER) <= 0, (path, size)
