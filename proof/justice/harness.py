"""One database, its workers and the ledger that their handlers write."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any, Self

import psycopg

from proof.crash.fleet import Fleet, Place
from proof.justice.judge import Claim, Fate
from proof.justice.ledger import START, Ledger
from support.processes import wait_for
from tenure import _wiring
from tenure._model.job import DEFAULT_PRIORITY, NewJob

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from proof.crash.fleet import Shape

TARGET = "proof.justice.jobs:app"
QUEUE = "justice"
# SIGTERM's grace is a second: no part waits for it unless it is what the part is about.
WORK = (
    "import proof.justice.bug, sys; from tenure.worker import main; "
    "sys.exit(main(sys.argv[4], concurrency=int(sys.argv[1]), "
    "processes=int(sys.argv[2]), grace=1, name=sys.argv[3]))"
)
_BATCH = 1000
_FATES = """
SELECT j.id, j.state, NULL, to_jsonb(j) FROM tenure.job AS j
UNION ALL SELECT j.id, j.state, j.done_reason, to_jsonb(j) FROM tenure.job_archive AS j
UNION ALL SELECT j.id, 'failed', j.done_reason, to_jsonb(j) FROM tenure.job_failed AS j
"""
_CLAIMS = """
SELECT a.job_id, a.token, w.pid,
    extract(epoch FROM a.started_at)::float8, extract(epoch FROM a.ended_at)::float8
FROM tenure.attempt AS a LEFT JOIN tenure.worker AS w ON w.id = a.claimed_by
"""
_LIVE = "SELECT count(*) FROM tenure.job"
_UP_WITHIN = 60.0


class Bed:
    """Enter it to start the workers; leave it, and all of them have ended."""

    def __init__(
        self,
        url: str,
        directory: Path,
        shape: Shape,
        lease: float,
        *,
        places: Sequence[Place] = (Place(),),
        target: str = TARGET,
        work: str = WORK,
        beside: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(parents=True)
        self.url = url
        self.directory = directory
        self.ledger = Ledger(directory / "ledger")
        self.environment = {
            "TENURE_DATABASE_URL": url,
            "TENURE_RUN_DIR": str(directory / "run"),
            "PROOF_LEDGER": str(self.ledger.path),
            "PROOF_LEASE": str(lease),
            "PROOF_SUITE": str(os.getpid()),
            **(beside or {}),
        }
        self.fleet = Fleet(
            shape, directory, self.environment, target=target, places=places, work=work
        )
        # The parents of all workers that there were: a handler's process has a child for parent.
        self.parents: set[int] = set()
        self._engine = _wiring.engine(url)
        self._connection: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.ledger.read()

    def start(self) -> None:
        """Start the workers and wait until they are at work."""
        self.fleet.start_all()
        self.note_parents()
        self.wait_up()

    def wait_up(self) -> None:
        """Wait until all children are at work."""
        wanted = self.fleet.shape.workers * self.fleet.shape.processes
        active = "SELECT count(*) FROM tenure.worker WHERE state = 'active'"
        if not wait_for(lambda: self.count(active) >= wanted, _UP_WITHIN):
            raise RuntimeError(f"the workers did not start; see the logs in {self.directory}")

    def end(self) -> None:
        """Kill all workers, by their ids. What they held is of no interest any more."""
        self.supervise(restart=False)
        for worker in self.fleet.workers:
            worker.dismiss(signal.SIGKILL)
        self.fleet.end()

    def close(self) -> None:
        """Let go of database and ledger."""
        self.ledger.close()
        self._engine.close()
        if self._connection is not None:
            self._connection.close()

    def supervise(self, *, restart: bool = True) -> None:
        """Start a worker for each one that has ended, as a service manager does."""
        if restart:
            self.fleet.supervise()
        self.note_parents()

    def note_parents(self) -> None:
        """Remember the workers' parents."""
        self.parents |= {worker.pid for worker in self.fleet.workers}

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Run a query; connect again if the server was away."""
        for _ in range(2):
            try:
                if self._connection is None:
                    self._connection = psycopg.connect(self.url, autocommit=True)
                return self._connection.execute(query.encode(), parameters).fetchall()
            except psycopg.OperationalError:
                self._connection = None
        raise RuntimeError("the server does not answer")

    def count(self, query: str, **parameters: object) -> int:
        """Return the one number that a query answers with."""
        return int(self.rows(query, **parameters)[0][0])

    def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        """Enqueue jobs and return their ids."""
        ids: list[int] = []
        for start in range(0, len(jobs), _BATCH):
            batch = jobs[start : start + _BATCH]
            answers = self._engine.run(self._engine.store.jobs.enqueue(batch))
            ids += [answer.id for answer in answers]
        return ids

    def fates(self) -> dict[int, Fate]:
        """Return the row of each job, wherever the store keeps it."""
        return {
            job: Fate(
                job,
                state,
                reason,
                row["attempt"],
                row["losses"],
                row.get("worker_losses"),
                row.get("deaths"),
            )
            for job, state, reason, row in self.rows(_FATES)
        }

    def claims(self) -> list[Claim]:
        """Return the running periods that have ended, as the store recorded them."""
        return [Claim(*row) for row in self.rows(_CLAIMS)]

    def wait_started(self, jobs: Collection[int], within: float) -> bool:
        """Wait until the handlers of all these jobs have begun."""

        def started() -> bool:
            self.ledger.read()
            return {m.job for m in self.ledger.marks if m.kind == START} >= set(jobs)

        return wait_for(started, within)

    def wait_ended(self, within: float, *, supervise: bool = True) -> bool:
        """Wait until no job is live; workers that ended are started again."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            if supervise:
                self.supervise()
            self.ledger.read()
            if self.count(_LIVE) == 0:
                return True
            time.sleep(0.1)
        return False


def job(
    task: str,
    *,
    max_attempts: int | None = None,
    timeout: float | None = None,
    priority: int = DEFAULT_PRIORITY,
    **args: Any,
) -> NewJob:
    """Make one job of the app on trial."""
    meta = {} if timeout is None else {"timeout": timeout}
    return NewJob(task, QUEUE, args, priority=priority, max_attempts=max_attempts, meta=meta)
