"""What the tests of this suite do again and again: look at rows, and end jobs as a worker would."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import psycopg
from psycopg.rows import dict_row

from support.processes import wait_for
from support.race_helpers import BROKEN, ended
from support.store import A, lanes
from tenure._model.outcome import Succeeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenure import Handle, Tenure
    from tenure._model.ids import JobId, Json
    from tenure._model.lease import ClaimedJob
    from tenure._model.outcome import Outcome

T = TypeVar("T")


class Apps(Protocol):
    """Makes one more app on a database, to be closed at the end of the test."""

    def __call__(self, url: str, *, pool_size: int = 10) -> Tenure: ...


def fetch(url: str, query: str, *args: object) -> list[dict[str, Any]]:
    """What a plain query answers, for looking at tables from outside."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = psycopg.RawCursor(connection, row_factory=dict_row)
        cursor.execute(query.encode(), args or None)
        return cursor.fetchall() if cursor.description else []


def rows(url: str) -> list[dict[str, Any]]:
    """All live jobs, oldest first, every column."""
    return fetch(url, "SELECT * FROM tenure.job ORDER BY id")


def row(url: str, job_id: JobId) -> dict[str, Any]:
    """One live job's row."""
    [found] = fetch(url, "SELECT * FROM tenure.job WHERE id = $1", job_id)
    return found


def connections(url: str) -> list[dict[str, Any]]:
    """The connections to the database that are not this look itself."""
    return fetch(
        url,
        "SELECT pid, application_name, state, wait_event, query FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend' "
        "AND pid <> pg_backend_pid() ORDER BY pid",
    )


def terminate(url: str, name: str) -> int:
    """Break the connections of this name, as an operator or a restart would; answers how many."""
    gone = fetch(
        url,
        "SELECT pg_terminate_backend(pid, 10000) AS gone FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = $1",
        name,
    )
    if not all(each["gone"] for each in gone):
        raise AssertionError("a connection would not go")
    return len(gone)


def claim(app: Tenure, *queues: str) -> ClaimedJob:
    """The next job of these queues, or of the default one, as a worker would get it."""
    op = app.engine.store.leases.claim(lanes(*queues or ("default",)), count=1, worker=A)
    [claimed] = app.engine.run(op).jobs
    return claimed


def end(app: Tenure, outcome: Outcome | None = None, *queues: str) -> JobId:
    """Claim the next job and settle it so; by default, well."""
    claimed = claim(app, *queues)
    app.engine.run(app.engine.store.settlement.settle([ended(claimed.lease, outcome)]))
    return claimed.job.id


def complete(app: Tenure, result: Json = None) -> JobId:
    """Claim the next job and complete it with a result."""
    return end(app, Succeeded(result))


def fail(app: Tenure) -> JobId:
    """Claim the next job and let its one attempt fail."""
    return end(app, BROKEN)


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return once the condition is true."""
    if not wait_for(lambda: bool(condition()), seconds):
        raise AssertionError("it did not come true in time")


def is_waited_for(url: str, handle: Handle[Any]) -> None:
    """Return once the job's row says that a client waits for it."""
    until(lambda: row(url, handle.id)["awaited"])


class Aside(threading.Thread, Generic[T]):
    """Something that is done in a thread of its own, and its answer."""

    def __init__(self, act: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self._answer: list[T] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer.append(self._act())
        except BaseException as error:  # noqa: BLE001 - raised again for the caller
            self._error = error

    def answer(self, within: float = 30.0) -> T:
        """What it returned or raised; waits for it."""
        self.join(within)
        if self.is_alive():
            raise AssertionError(f"no answer within {within} s")
        if self._error is not None:
            raise self._error
        return self._answer[0]


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which must end within a while."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=directory,
    )


def script(directory: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    file = directory / "program.py"
    file.write_text(text)
    return run(directory, str(file), *arguments)
