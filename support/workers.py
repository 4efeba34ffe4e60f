"""Real workers for suites that break them: started by the command line, ended by signals.

Beside them a bed: the database as an outsider sees it, and files that handlers leave marks in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import psycopg
from psycopg.rows import dict_row

from support.binaries import ROOT
from support.processes import children, die_with_parent, send, wait_for
from tenure import _wiring
from tenure._model.audit import By

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from tenure._model.attempt import AttemptRow
    from tenure._model.ids import JobId, WorkerId
    from tenure._model.job import JobRow
    from tenure._model.worker import WorkerRow
    from tenure.task import BoundCall


class Worker:
    """One `tenure worker`, from its start to its end; what it says goes to a file, unless its
    stderr is another's."""

    def __init__(
        self,
        target: str,
        url: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        stderr: int | None = None,
        /,
        **options: object,
    ) -> None:
        self._log = directory / f"worker-{time.monotonic_ns()}.log"
        words = [f"--{name}={value}" for name, value in options.items()]
        addresses = {"TENURE_DATABASE_URL": url, "TENURE_RUN_DIR": str(directory / "run")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tenure", "worker", target, *words],
                cwd=ROOT,
                env={**os.environ, **addresses, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log if stderr is None else stderr,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The parent's process id."""
        return self._process.pid

    @property
    def children(self) -> set[int]:
        """The process ids of the children."""
        return set(children(self.pid))

    @property
    def alive(self) -> bool:
        """Whether the parent has not ended."""
        return self._process.poll() is None

    def send(self, request: signal.Signals) -> None:
        """Send the parent a signal."""
        self._process.send_signal(request)

    def wait(self, seconds: float) -> int:
        """The exit code; TimeoutExpired if it does not end in time."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End the parent; the kernel ends its children, and theirs."""
        send(self.pid, signal.SIGKILL)
        self._process.wait()

    def log(self) -> str:
        """What parent, children and handlers have said so far."""
        return self._log.read_text(errors="replace")


@dataclass(frozen=True, slots=True)
class Effects:
    """What a handler left in its file: when it wrote each line, and when the last was written
    by the file system's account. Seconds of the machine's clock, which is the database's."""

    at: Sequence[float]
    written_at: float

    @property
    def last(self) -> float:
        """The later of what the last line says and what the file system says."""
        return max(self.at[-1], self.written_at)


class Bed:
    """A database with Tenure's schema, seen past any proxy, and a directory for effects."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self._engine = _wiring.engine(url)

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()

    def enqueue(self, calls: Iterable[BoundCall[Any]]) -> list[JobId]:
        """Enqueue calls, all at once; their jobs' ids."""
        jobs = [call.job for call in calls]
        return [answer.id for answer in self._engine.run(self._engine.store.jobs.enqueue(jobs))]

    def job(self, job_id: JobId) -> JobRow:
        """The job as it is now."""
        row = self._engine.run(self._engine.store.jobs.get(job_id))
        if row is None:
            raise AssertionError(f"job {job_id} is not kept")
        return row

    def attempts(self, job_id: JobId) -> Sequence[AttemptRow]:
        """The ended running periods of a job."""
        return self._engine.run(self._engine.store.jobs.attempts(job_id))

    def cancel(self, job_id: JobId) -> None:
        """Ask for a job to be cancelled, as an operator does."""
        self._engine.run(
            self._engine.store.job_commands.cancel([job_id], By("operator", reason="a test"))
        )

    def drain(self, worker: WorkerId) -> None:
        """Ask a worker to drain, as an operator does."""
        self._engine.run(self._engine.store.workers.drain(worker, By("operator", reason="a test")))

    def workers(self) -> Sequence[WorkerRow]:
        """All known workers."""
        return self._engine.run(self._engine.store.workers.list())

    def fetch(self, query: str, *args: object) -> list[dict[str, Any]]:
        """What a plain query answers."""
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(query.encode(), args or None)
            return cursor.fetchall() if cursor.description else []

    def count(self, query: str, *args: object) -> int:
        """The one number that a plain query answers with."""
        [[number]] = [row.values() for row in self.fetch(query, *args)]
        return int(number)

    def ended(self, state: str = "completed") -> int:
        """How many jobs have ended so."""
        return self.count("SELECT count(*) FROM tenure.job_archive WHERE state = %s", state)

    def endings(self) -> dict[str, int]:
        """How many attempts ended in each way."""
        rows = self.fetch("SELECT outcome, count(*) FROM tenure.attempt GROUP BY 1")
        return {row["outcome"]: row["count"] for row in rows}

    def path(self, name: str) -> str:
        """Where a handler of this name leaves its effects."""
        return str(self.directory / f"{name}.effects")

    def effects(self, name: str) -> Effects:
        """What a handler has left so far."""
        file = self.directory / f"{name}.effects"
        lines = file.read_text().splitlines() if file.exists() else []
        at = [float(line.split()[0]) for line in lines]
        return Effects(at, file.stat().st_mtime if lines else 0.0)


def soon(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    """Return once the condition holds; AssertionError with these words if it does not in time."""
    if not wait_for(condition, seconds):
        raise AssertionError(f"{otherwise} within {seconds:g} s")
