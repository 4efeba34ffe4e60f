"""The pictures of the documentation: the demo's dashboard, page by page, in a real browser.

Run by `just docs-screenshots [SECONDS]`: the demo runs this long before the first picture. Writes
docs/pictures/PAGE-THEME-WIDTH.png; a test holds them against the pages that show them.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import httpx

from support.browsing import DESK, PHONE, chromium
from support.png_palette import shrunk
from support.processes import die_with_parent, wait_for
from tenure.admin import By, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = {1280: DESK, 390: PHONE}
PAGES = {
    "overview": "/?over=15m",
    "queues": "/queues",
    "jobs": "/jobs",
    "job": "/jobs/{job}",
    "schedules": "/schedules",
    "workers": "/workers",
    "dead-letters": "/failed",
    "operations": "/operations",
    "audit": "/audit",
    "system": "/system",
}
PATIENCE = 60.0
_LINK = re.compile(r"dashboard: (http://\S+)/sign-in#\S+")
_DATABASE = re.compile(r"--database-url (.+)")
# What has been folded by then fills a few minutes of the charts.
_SECONDS = 240.0


def main() -> None:
    """Take all pictures again."""
    seconds = float(sys.argv[1]) if sys.argv[1:] else _SECONDS
    for old in PICTURES.glob("*.png"):
        old.unlink()
    with demo() as (url, secret), chromium() as browser:
        time.sleep(seconds)
        blank = browser.new_page()
        paths = {name: path.format(job=long_job(url, secret)) for name, path in PAGES.items()}
        for theme in THEMES:
            for width in SIZES:
                with visit(browser, url, secret, theme, width) as page:
                    for name, path in paths.items():
                        taken = shrunk(blank, picture(page, url + path))
                        (PICTURES / f"{name}-{theme}-{width}.png").write_bytes(taken)


def picture(page: Page, address: str) -> bytes:
    """What is seen of a page without scrolling, once it is live."""
    page.goto(address)
    page.wait_for_selector("#live-state[data-state=live]", state="attached")
    return page.screenshot()


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """A demo on a free port, and the way in: where it is, and an access token."""
    with TemporaryDirectory() as directory:
        words = Path(directory) / "words"
        with words.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tenure", "demo", "--port", "0"],
                env=os.environ,
                stdin=subprocess.DEVNULL,
                stderr=file,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        try:
            if not wait_for(lambda: _LINK.search(words.read_text()) is not None, PATIENCE):
                raise TimeoutError(words.read_text())
            [url] = _LINK.findall(words.read_text())
            [[database]] = map(shlex.split, _DATABASE.findall(words.read_text()))
            with connect(database) as admin:
                made = admin.tokens.create("pictures", By("pictures"), scopes=["admin"])
            yield url, made.secret
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def long_job(url: str, secret: str) -> str:
    """An import that runs now; one that was lost before, if there is one."""
    request = {"state": "running", "task": "imports.catalogue"}
    headers = {"Authorization": f"Bearer {secret}"}
    answer = httpx.get(f"{url}/v1/jobs", params=request, headers=headers, timeout=30)
    found: list[dict[str, Any]] = answer.raise_for_status().json()["jobs"]
    best = max(found, key=lambda job: job["losses"])
    return str(best["id"])


@contextmanager
def visit(
    browser: Browser, url: str, secret: str, theme: Literal["light", "dark"], width: int
) -> Iterator[Page]:
    """A browser of this width that has signed in."""
    across, down = SIZES[width]
    context = browser.new_context(
        viewport={"width": across, "height": down}, color_scheme=theme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE * 1000)
    try:
        page = context.new_page()
        page.goto(f"{url}/sign-in")
        page.get_by_label("Access token").fill(secret)
        page.keyboard.press("Enter")
        page.wait_for_selector("header nav")
        yield page
    finally:
        context.close()


if __name__ == "__main__":
    main()
