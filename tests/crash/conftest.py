"""A bed for each test, and figures of what was seen, told at the end of the run.

TENURE_BATTERIES=full makes every battery as long as the proof wants it.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Protocol

import psycopg
import pytest

from support.store import install
from support.workers import Bed, Worker
from tests.crash.handlers import TARGET

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from support.databases import Databases

FULL = os.environ.get("TENURE_BATTERIES") == "full"
full_only = pytest.mark.full_only


class Hire(Protocol):
    """Starts one more worker, ended with the test at the latest."""

    def __call__(self, url: str | None = None, **options: object) -> Worker: ...


class Tell(Protocol):
    """Notes a figure for the end of the run."""

    def __call__(self, figure: str) -> None: ...


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is for the full form alone to `just prove batteries`."""
    left = [] if FULL else [item for item in items if item.get_closest_marker("full_only")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture
def bed(databases: Databases, tmp_path: Path) -> Iterator[Bed]:
    """A fresh database with the schema of this release."""
    bed = Bed(databases.create(databases.template("tenure", install)), tmp_path)
    yield bed
    bed.close()
    databases.drop(bed.url)


@pytest.fixture
def hire(bed: Bed, tmp_path: Path) -> Iterator[Hire]:
    """Starts real workers on this suite's tasks."""
    hired: list[Worker] = []

    def hire(url: str | None = None, **options: object) -> Worker:
        hired.append(Worker(TARGET, url or bed.url, tmp_path, None, None, **options))
        return hired[-1]

    yield hire
    for worker in hired:
        worker.kill()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Notes figures, under the test's name."""

    def tell(figure: str) -> None:
        request.node.user_properties.append(("figure", figure))

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was seen, by whichever process."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties if report.when == "call" else ():
                if name == "figure":
                    test = report.nodeid.rpartition("::")[2]
                    terminalreporter.write_line(f"{test}: {value}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the workers said where a test failed."""
    report = yield
    if (
        report.when == "call"
        and report.failed
        and isinstance(item, pytest.Function)
        and "bed" in item.funcargs
    ):
        bed = item.funcargs["bed"]
        assert isinstance(bed, Bed)
        for log in sorted(bed.directory.glob("worker-*.log")):
            report.sections.append((log.name, log.read_text(errors="replace")[-20_000:]))
        report.sections.append(("live jobs", _live(bed)))
    return report


def _live(bed: Bed) -> str:
    with contextlib.suppress(psycopg.Error):
        rows = bed.fetch(
            "SELECT state, task, attempt, losses, count(*), min(run_at) AS due_at, "
            "min(lease_expires_at) AS lease_until, clock_timestamp() AS now "
            "FROM tenure.job GROUP BY 1, 2, 3, 4"
        )
        return "\n".join(str({name: str(value) for name, value in row.items()}) for row in rows)
    return "the database does not answer"
