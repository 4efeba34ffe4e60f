"""What one part of the suite stands on: a database with a ledger, a history, workers, and jobs
that are enqueued as fast as the workers can take them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import psycopg

from proof.crash import jobs
from proof.crash.fleet import TARGET, WORK, Fleet, Place
from proof.crash.history import History
from support.processes import wait_for
from tenure import _wiring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path
    from random import Random

    from proof.crash.fleet import Shape
    from proof.crash.history import Line
    from tenure._model.job import NewJob

    Maker = Callable[[Random], NewJob]

_BATCH = 1000
_FEED_EVERY = 0.1
_LOOK = 0.003
# By job_lane_idx and job_expiry_idx: a backlog of another priority is not looked at.
_OPEN = """
SELECT (
    SELECT count(*) FROM tenure.job AS j
    WHERE NOT j.held AND j.state = 'queued'
        AND j.queue = %(queue)s AND j.priority = %(priority)s
) + (
    SELECT count(*) FROM tenure.job AS j WHERE j.state = 'running' AND j.priority = %(priority)s
)
"""


class Bed:
    """One database with its workers. Leave it, and all its processes have ended."""

    def __init__(
        self,
        url: str,
        directory: Path,
        shape: Shape,
        rng: Random,
        bug: str | None,
        *,
        target: str = TARGET,
        places: Sequence[Place] = (Place(),),
        work: str = WORK,
        beside: Mapping[str, str] | None = None,
    ) -> None:
        directory.mkdir(parents=True)
        self.rng = rng
        self.history = History(directory / "history")
        self.environment = {
            "TENURE_DATABASE_URL": url,
            "TENURE_RUN_DIR": str(directory / "run"),
            "PROOF_HISTORY": str(self.history.path),
            "PROOF_BUG": bug or "",
            **(beside or {}),
        }
        self.fleet = Fleet(
            shape, directory, self.environment, target=target, places=places, work=work
        )
        self.enqueued: list[int] = []
        self._engine = _wiring.engine(url)
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(jobs.LEDGER)
        self._feed_at = 0.0

    def __enter__(self) -> Self:
        try:
            self._come_up()
        except BaseException:
            self.fleet.end()
            raise
        return self

    def _come_up(self) -> None:
        wanted = self.fleet.shape.workers * self.fleet.shape.processes
        self.fleet.start_all()
        if not wait_for(lambda: self._active() >= wanted, 60):
            raise RuntimeError("the workers did not come up; see their logs")

    def __exit__(self, *_: object) -> None:
        self.fleet.end()
        self.history.new()

    def close(self) -> None:
        """Let go of the database; after this the accounts are closed."""
        self.history.close()
        self._connection.close()
        self._engine.close()

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """What a query answers."""
        return self._connection.execute(query.encode(), parameters).fetchall()

    def now(self) -> datetime:
        """The database's clock."""
        at: datetime = self.rows("SELECT clock_timestamp()")[0][0]
        return at

    def enqueue(self, new: Sequence[NewJob], *, counted: bool = True) -> None:
        """Enqueue jobs; of those that count, each must be completed in the end."""
        for start in range(0, len(new), _BATCH):
            answers = self._engine.run(self._engine.store.jobs.enqueue(new[start : start + _BATCH]))
            if counted:
                self.enqueued += [answer.id for answer in answers]

    def open(self) -> int:
        """How many of the jobs that count have not ended."""
        [(count,)] = self.rows(_OPEN, queue=jobs.QUEUE, priority=jobs.PRIORITY)
        return int(count)

    def pump(self, make: Maker, *, busy: int) -> list[Line]:
        """Keep this many jobs open and dead workers replaced; return what handlers wrote."""
        if time.monotonic() >= self._feed_at:
            self._feed_at = time.monotonic() + _FEED_EVERY
            self.fleet.supervise()
            self.enqueue([make(self.rng) for _ in range(busy - self.open())])
        time.sleep(_LOOK)
        return self.history.new()

    def all_end(self, within: float) -> bool:
        """Answer whether every job that counts has ended in time; dead workers are replaced."""

        def ended() -> bool:
            self.fleet.supervise()
            self.history.new()
            return self.open() == 0

        return wait_for(ended, within)

    def _active(self) -> int:
        return int(self.rows("SELECT count(*) FROM tenure.worker WHERE state = 'active'")[0][0])
