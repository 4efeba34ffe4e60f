"""What is measured: the store's own operations, and the bare statements beside them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from psycopg import RawCursor
from psycopg.rows import dict_row

from tenure._model.ids import WorkerId
from tenure._model.job import NewJob
from tenure._model.outcome import SettleRequest, Succeeded
from tenure._rules.claiming import LaneTracker
from tenure._rules.lifecycle import settle
from tenure._store.postgres.sessions import Session
from tenure._store.postgres.statements import literal
from tenure._store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

WORKER = WorkerId(UUID(int=1))
QUEUE = "bench"


class Subject(Protocol):
    """Something that can enqueue, claim, renew and settle batches on one connection."""

    name: str
    connection: Connection[Any]

    def enqueue(self, count: int, payload: str) -> None: ...
    def woken(self) -> None: ...
    def claim(self, count: int) -> Sequence[Any]: ...
    def renew(self, claims: Sequence[Any]) -> None: ...
    def settle(self, claims: Sequence[Any]) -> None: ...


class Bare:
    """The statements of bare.sql in a plain loop."""

    name = "bare"

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        text = (Path(__file__).parent / "bare.sql").read_text()
        parts = text.split("-- name: ")[1:]
        self._texts = {p.split("\n", 1)[0]: p.split("\n", 1)[1].encode() for p in parts}
        self._cursor = RawCursor(connection, row_factory=dict_row)

    def install(self) -> None:
        self._cursor.execute(self._texts["schema"])

    def _run(self, name: str, *args: object) -> list[dict[str, Any]]:
        arguments = [literal(a) for a in args]
        self._cursor.execute(self._texts[name], arguments, prepare=True)
        return self._cursor.fetchall()

    def enqueue(self, count: int, payload: str) -> None:
        self._run("enqueue", [QUEUE] * count, ["noop"] * count, [payload] * count)

    def woken(self) -> None:
        """Nothing: the bare loop always looks."""

    def claim(self, count: int) -> Sequence[dict[str, Any]]:
        return self._run("claim", QUEUE, count, WORKER)

    def _leases(self, claims: Sequence[dict[str, Any]]) -> list[list[Any]]:
        return [[c[field] for c in claims] for field in ("id", "token", "claimed_by")]

    def renew(self, claims: Sequence[dict[str, Any]]) -> None:
        self._run("renew", *self._leases(claims))

    def settle(self, claims: Sequence[dict[str, Any]]) -> None:
        self._run("settle", *self._leases(claims))


class Tenure:
    """The store as a claimer drives it: ten lanes of a queue, with floors."""

    name = "tenure"

    def __init__(self, connection: Connection[Any], queues: Sequence[str] = (QUEUE,)) -> None:
        self.connection = connection
        self.session = Session(connection)
        self.store = PostgresStore()
        self.book = LaneTracker(queues)
        self._woken = True

    def install(self) -> None:
        self.session.run(self.store.install())

    def enqueue(self, count: int, payload: str, *, priorities: Sequence[int] = (5,)) -> None:
        args = json.loads(payload)
        jobs = [NewJob("noop", QUEUE, args, priority=p) for p in priorities]
        many = [jobs[i % len(jobs)] for i in range(count)]
        self.session.run(self.store.jobs.enqueue(many, wake=False))

    def woken(self) -> None:
        """The next claim looks at every lane, as after a wakeup."""
        self._woken = True

    def claim(self, count: int, *, ttl: timedelta | None = None) -> Sequence[Any]:
        lanes = self.book.next_lanes(woken=self._woken)
        self._woken = False
        claims = self.session.run(
            self.store.leases.claim(lanes, count=count, worker=WORKER, ttl=ttl)
        )
        self.book.record_claim(lanes, claims, wanted=count)
        return claims.jobs

    def scan(self, count: int) -> Sequence[Any]:
        """Claim from the lanes of a queue from zero: for what lies below their floors."""
        lanes = self.book.next_scan_lanes()
        if not lanes:
            return []
        claims = self.session.run(
            self.store.leases.claim(lanes, count=count, worker=WORKER, patient=True)
        )
        self.book.record_scan(lanes, claims, wanted=count)
        return claims.jobs

    def renew(self, claims: Sequence[Any]) -> None:
        self.session.run(self.store.leases.renew([c.lease for c in claims]))

    def settle(self, claims: Sequence[Any]) -> None:
        done = settle(Succeeded(), attempt=1, limit=3, backoff=timedelta(0))
        self.session.run(
            self.store.settlement.settle([SettleRequest(c.lease, done) for c in claims])
        )
