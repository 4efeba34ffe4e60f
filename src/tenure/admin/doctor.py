"""The doctor: what is wrong, or could be better, with the database, its wakeups and the workers.

Each look is one short function; what it finds says why it matters and what to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from tenure._model.queue import EVERY_QUEUE
from tenure._model.schedule import ScheduleRow
from tenure._model.worker import Presence, WorkerRow
from tenure._rules.presence import FRESH, live, unknown_tasks
from tenure._store.engine import Engine
from tenure._store.port import Op
from tenure.admin.faces import on_a_thread
from tenure.admin.schema import Schema
from tenure.config import DEFAULTS
from tenure.errors import StoreError

_FIRED_WITHIN = timedelta(minutes=1)
_NAMED = 3
_PAGE = 1000
_CLOCKS_AGREE_WITHIN = timedelta(seconds=5)
_POLL = f"{DEFAULTS.poll.total_seconds():g} s"


class Level(StrEnum):
    """How bad a finding is. Only a problem fails the command."""

    FINE = "fine"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found; where it is not fine, why it matters and what to do."""

    subject: str
    level: Level
    what: str
    why: str = ""
    todo: str = ""


Found = Iterator[Finding]


class Doctor(Schema):
    """The verb that examines an installation."""

    def doctor(self) -> Sequence[Finding]:
        """Examine the installation: the database, its durability, the schema, wakeups, workers, the
        queues that nobody serves and the schedules that nobody fires. What cannot be reached is a
        finding, not an error."""
        return list(self._findings())

    async def adoctor(self) -> Sequence[Finding]:
        """The same in the async world, on a thread."""
        return await on_a_thread(self.doctor)

    def _findings(self) -> Found:
        try:
            began = datetime.now(UTC)
            server = self.perform(self._store.condition())
            took = datetime.now(UTC) - began
        except StoreError as error:
            yield Finding(
                "database",
                Level.PROBLEM,
                f"the database does not answer: {error}",
                "nothing can be enqueued, claimed or settled",
                "start the server, or mend the URL",
            )
            yield from _redis(self._engine)
            return
        yield Finding(
            "database",
            Level.FINE,
            f"PostgreSQL {server['version']} answers, as role {server['role']}",
        )
        yield from _durability(server)
        yield from _clock(server["now"] - (began + took / 2), took)
        yield from _wakeups(self._engine)
        yield from _redis(self._engine)
        status = self.schema()
        if not status.fits:
            yield Finding(
                "schema",
                Level.PROBLEM,
                str(status.problem),
                "this release cannot work with it",
                "run: tenure db migrate",
            )
            return
        yield Finding("schema", Level.FINE, f"version {status.version} fits this release")
        workers = self.perform(self._store.workers())
        yield from _workers(workers)
        yield from _work(workers, self.perform(self._store.queue_names()))
        yield from _schedules(self.perform(self._every_schedule()), server["now"])

    def _every_schedule(self) -> Op[Sequence[ScheduleRow]]:
        found: list[ScheduleRow] = []
        while True:
            after = found[-1].name if found else ""
            page = yield from self._store.schedules(after=after, count=_PAGE)
            found += page
            if len(page) < _PAGE:
                return found


def _durability(server: Mapping[str, Any]) -> Found:
    risks = {
        "fsync": "a machine that loses power loses acknowledged jobs, and may lose the database",
        "full_page_writes": "a page that was half written when power failed stays torn",
        "synchronous_commit": "a server that crashes loses jobs that were acknowledged just before",
    }
    off = [name for name in risks if server[name] == "off"]
    for name in off:
        yield Finding(
            "durability",
            Level.PROBLEM,
            f"{name} is off",
            risks[name],
            f"run: ALTER SYSTEM SET {name} = 'on', then SELECT pg_reload_conf()",
        )
    if not off:
        yield Finding("durability", Level.FINE, "what is acknowledged is on disk")


def _clock(ahead: timedelta, took: timedelta) -> Found:
    if abs(ahead) <= _CLOCKS_AGREE_WITHIN + took:
        yield Finding("clock", Level.FINE, "this machine's clock and the database's agree")
        return
    seconds = abs(ahead).total_seconds()
    yield Finding(
        "clock",
        Level.WARNING,
        f"the database's clock is {seconds:.0f} s {'ahead' if ahead > timedelta(0) else 'behind'}",
        "leases do not depend on it, but a run_at that is worked out here is wrong by as much",
        "let both synchronise by NTP",
    )


def _wakeups(engine: Engine) -> Found:
    try:
        heard = engine.hears()
    except StoreError as error:
        yield Finding(
            "wakeups",
            Level.PROBLEM,
            f"LISTEN could not be tried: {error}",
            f"workers that hear nothing poll, every {_POLL}",
            "let the server take more connections",
        )
        return
    if heard:
        yield Finding("wakeups", Level.FINE, "what one connection notifies, another hears")
    elif heard is None and engine.bell is not None:
        yield Finding(
            "wakeups",
            Level.FINE,
            "a pooler stands before the server, so LISTEN is not used; Redis wakes workers",
        )
    elif heard is None:
        yield Finding(
            "wakeups",
            Level.WARNING,
            "a pooler stands before the server, so LISTEN is not used",
            f"workers poll, every {_POLL} at the most; everything else works",
            "set TENURE_REDIS_URL, or give workers the server's own address",
        )
    else:
        yield Finding(
            "wakeups",
            Level.PROBLEM,
            "what one connection notifies, another does not hear",
            f"workers poll, every {_POLL} at the most",
            "give workers the address of the server itself, or set TENURE_REDIS_URL",
        )


def _redis(engine: Engine) -> Found:
    if engine.bell is None:
        return
    try:
        engine.bell.check()
    except StoreError as error:
        yield Finding(
            "redis",
            Level.PROBLEM,
            str(error),
            "it carries wakeups: workers hear PostgreSQL alone, or poll; no job is at risk",
            "start it, or mend TENURE_REDIS_URL",
        )
    else:
        yield Finding("redis", Level.FINE, "Redis takes what is published")


def _workers(workers: Sequence[WorkerRow]) -> Found:
    stale = [w for w in workers if w.state is not Presence.OFFLINE and w.beat_age > FRESH]
    for worker in stale:
        yield Finding(
            "workers",
            Level.WARNING,
            f"worker {worker.name} on {worker.host} has not beaten for "
            f"{worker.beat_age.total_seconds():.0f} s",
            "it was killed, or is cut off; others take over what it held when its leases end",
            "look at its machine; its row goes by itself after a week",
        )
    there = live(workers)
    if there:
        slots = sum(worker.slots for worker in there)
        yield Finding("workers", Level.FINE, f"{len(there)} workers are live, with {slots} slots")
    else:
        yield Finding(
            "workers",
            Level.WARNING,
            "no worker is live",
            "jobs can be enqueued, and wait",
            "run: tenure worker module:app",
        )


def _work(workers: Sequence[WorkerRow], queues: Sequence[str]) -> Found:
    """What waits for a worker that is not there."""
    there = live(workers)
    served = {queue for worker in there for queue in worker.queues}
    for queue in sorted(set(queues) - served) if EVERY_QUEUE not in served else ():
        yield Finding(
            "queues",
            Level.PROBLEM,
            f"queue {queue} has jobs, and no live worker serves it",
            "its jobs wait",
            f"run: tenure worker module:app -q {queue}",
        )
    unknown = [unknown_tasks(worker) for worker in there]
    for task in sorted(set.intersection(*unknown)) if unknown else ():
        yield Finding(
            "tasks",
            Level.PROBLEM,
            f"no live worker knows task {task}",
            "its jobs wait; each worker that met one has left it to others",
            "deploy the code that has it, or name its module in Tenure(imports=[…])",
        )


def _schedules(schedules: Sequence[ScheduleRow], now: datetime) -> Found:
    """What is due, and has been for longer than anybody who fires would let it be."""
    limit = now - _FIRED_WITHIN
    waiting = [(s.next_at, s.name) for s in schedules if s.next_at is not None]
    overdue = sorted(each for each in waiting if each[0] < limit)
    if overdue:
        names = ", ".join(name for _, name in overdue[:_NAMED])
        more = f" and {len(overdue) - _NAMED} more" if len(overdue) > _NAMED else ""
        late = (now - overdue[0][0]).total_seconds()
        yield Finding(
            "schedules",
            Level.PROBLEM,
            f"schedules are due and nobody fires them: {names}{more}; the first for {late:.0f} s",
            "their jobs are not made; ticks that are missed come to what their policy says",
            "start a worker: tenure worker module:app; or tenure scheduler module:app",
        )
    elif schedules:
        yield Finding("schedules", Level.FINE, f"{len(schedules)} schedules, none of them overdue")
