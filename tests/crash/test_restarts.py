"""Children that end, hang or leave unasked: replaced, and the log and the probe say why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.workers import Worker, soon
from tests.crash import hanging
from tests.crash.conftest import full_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.workers import Bed
    from tests.crash.conftest import Tell


class Shop:
    """A worker whose code can be made to hang or to fail when it is loaded."""

    def __init__(self, bed: Bed, directory: Path) -> None:
        self._bed = bed
        self.hang = directory / "hang"
        self.broken = directory / "broken"
        self.directory = directory
        environment = {
            "TENURE_TEST_HANG": str(self.hang),
            "TENURE_TEST_BREAK": str(self.broken),
        }
        self.worker = Worker(
            hanging.TARGET, bed.url, directory, environment, None, processes=2, grace=3
        )

    def works(self) -> int:
        """The process that runs the next job."""
        [job_id] = self._bed.enqueue([hanging.brief.bind()])
        soon(lambda: not self._bed.job(job_id).state.is_live, 30, "nothing runs")
        result: Any = self._bed.job(job_id).result
        return int(result)

    def state(self) -> dict[str, Any]:
        """The worker's state file."""
        [file] = (self.directory / "run").glob("*.json")
        document: dict[str, Any] = json.loads(file.read_text())
        return document

    def probe(self) -> subprocess.CompletedProcess[str]:
        """What `tenure probe` says."""
        return subprocess.run(
            [sys.executable, "-m", "tenure", "probe"],
            env={**os.environ, "TENURE_RUN_DIR": str(self.directory / "run")},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )


@pytest.fixture
def shop(bed: Bed, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(bed, tmp_path)
    with shop.worker:
        shop.works()
        soon(lambda: shop.state()["working"] == 2, 20, "not both children work")
        yield shop


def test_a_child_that_a_signal_made_drain_is_replaced_and_the_log_says_so(shop: Shop) -> None:
    """A tool that signals by name, a library's own shutdown: the parent did not ask for it."""
    before = shop.worker.children
    gone = min(before)
    os.kill(gone, signal.SIGTERM)
    soon(lambda: gone not in shop.worker.children, 20, "it did not drain")
    soon(lambda: len(shop.worker.children) == 2, 20, "it was not replaced")
    assert "after a signal from another process" in shop.worker.log()
    soon(lambda: shop.state()["working"] == 2, 20, "its successor does not work")
    shop.worker.send(signal.SIGTERM)
    assert shop.worker.wait(10) == 0


def test_a_refusal_of_a_later_child_is_logged_with_its_reason_and_the_next_ones_come_slowly(
    shop: Shop, tell: Tell
) -> None:
    shop.broken.touch()
    for child in shop.worker.children:
        os.kill(child, signal.SIGKILL)
    soon(lambda: "RuntimeError: broken as planned" in shop.worker.log(), 20, "no reason given")
    began = time.monotonic()
    soon(
        lambda: "children crashed within a minute, next start in" in shop.worker.log(),
        60,
        "no pause",
    )
    tell(f"children come more slowly after {time.monotonic() - began:.1f} s")
    soon(lambda: shop.state()["working"] == 0, 20, "it still says that children work")
    soon(lambda: "broken as planned" in shop.state()["trouble"], 10, "no reason in the state file")
    shop.broken.unlink()
    shop.works()


def test_children_that_die_at_the_same_time_are_all_replaced(shop: Shop) -> None:
    """While one is gone, the other is told to fire schedules, and may be gone by then too."""
    for _ in range(2):
        before = shop.worker.children
        for child in before:
            os.kill(child, signal.SIGKILL)
        soon(
            lambda before=before: len(shop.worker.children - before) == 2,  # type: ignore[misc]
            20,
            "not both were replaced",
        )
        soon(lambda: shop.state()["working"] == 2, 20, "not both work")
    assert "never retrieved" not in shop.worker.log()


def test_a_reload_that_hangs_or_fails_can_be_repeated(shop: Shop) -> None:
    before = shop.worker.children
    shop.hang.touch()
    shop.worker.send(signal.SIGHUP)
    soon(lambda: len(shop.worker.children) == 4, 20, "the reload did not begin")
    assert shop.works() in before

    shop.hang.unlink()
    shop.broken.touch()
    shop.worker.send(signal.SIGHUP)
    soon(lambda: "RuntimeError: broken as planned" in shop.worker.log(), 20, "no reason given")
    soon(lambda: shop.worker.children == before, 20, "the old children are not alone")

    shop.broken.unlink()
    shop.worker.send(signal.SIGHUP)
    soon(lambda: "INFO reloaded" in shop.worker.log(), 20, "the reload did not succeed")
    soon(lambda: not shop.worker.children & before, 20, "the old children are still there")
    assert shop.works() not in before


@full_only
def test_a_worker_without_a_child_that_works_is_unhealthy_after_a_minute(shop: Shop) -> None:
    assert shop.probe().returncode == 0
    shop.hang.touch()
    for child in shop.worker.children:
        os.kill(child, signal.SIGKILL)
    soon(lambda: shop.state()["none_working_for"] > 5, 20, "it still works")
    assert shop.probe().returncode == 0
    soon(lambda: shop.probe().returncode == 1, 70, "the probe does not fail")
    why = shop.probe().stderr
    assert "has been loading the app for" in why or "did not load the app in time" in why
    shop.hang.unlink()
    shop.works()
    soon(lambda: shop.probe().returncode == 0, 20, "the probe does not recover")
