"""Histories for the checker: a small world with one job, a database, workers and clients.

It knows nothing of the checker's life cycle. The database is one row with the guards of the
lease; requests and answers travel, late or never; workers sleep, crash and wake up; everyone
writes down what they saw.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, TypeVar

from proof.checker.events import Event, Final, JobHistory
from tests.proof.small_store import Row

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_CALM_AFTER = 12.0
_END = 60.0
_TROUBLED = ("plain", "slow", "rough")


class World:
    """One job's life, from a seed."""

    def __init__(self, seed: int, store: type[Row] = Row) -> None:
        self.rng = Random(f"world {seed}")  # noqa: S311 - to be repeated
        chance = self.rng.random
        self.mood = self.rng.choice(_TROUBLED)
        self.lease = 1.0 if self.mood == "rough" else 3.0
        self.writes = chance() < 0.4
        self.unstorable = chance() < 0.05
        self.row = store(
            max_attempts=self.rng.choice((3, 4, 50)),
            max_losses=self.rng.choice((1, 2, 50)),
            max_worker_losses=self.rng.choice((1, 2, 10)),
            alone=chance() < 0.5,
        )
        self.row.timeline = self.rng.choice((0, 1))
        self.events: list[Event] = []
        self.now = 0.0
        self._numbers = count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []

    def history(self, job_id: int) -> JobHistory:
        """Let it happen; what everyone saw."""
        self._clients()
        self.at(0.3, self._worker)
        self.at(0.5, self._worker)
        self.at(1.0, self._sweep)
        if self.rng.random() < 0.05:
            self.at(self.rng.uniform(0, 6), self._fail_over)
        if self.rng.random() < 0.2:
            self.at(self.rng.uniform(0, 6), self._start_again)
        while self._agenda and self.now < _END:
            self.now, _, then = heapq.heappop(self._agenda)
            then()
        row = self.row
        final = Final(
            "gone" if row.state == "absent" else row.state,
            row.token,
            tuple(sorted(row.attempts, key=itemgetter(0))),
            row.result,
            tuple(row.entries),
            self.writes,
            row.reason,
        )
        self.events.sort(key=lambda event: event.since)
        return JobHistory(
            job_id,
            tuple(self.events),
            final,
            row.max_attempts,
            row.max_losses,
            row.max_worker_losses,
            unstorable=self.unstorable,
        )

    def at(self, delay: float, then: Callable[[], None]) -> None:
        """Do it later."""
        heapq.heappush(self._agenda, (self.now + delay, next(self._numbers), then))

    def note(self, what: str, since: float, until: float, token: int = 0, answer: str = "") -> None:
        """Record an observation."""
        self.events.append(Event(what, since, until, token, answer))

    def likely(self, chance: float) -> bool:
        """Whether something bad happens; when it is calm, nothing does."""
        factor = {"plain": 0.25, "slow": 1.0, "rough": 1.5}[self.mood]
        return self.now < _CALM_AFTER and self.rng.random() < chance * factor

    def delay(self) -> float:
        """How long a message takes."""
        if self.likely(0.1):
            return self.rng.uniform(0.5, 4.0)
        return self.rng.uniform(0.001, 0.05)

    def ask(
        self, do: Callable[[], T], answered: Callable[[T | None, float], None], wait: float = 1.0
    ) -> None:
        """Send a request; the answer comes back, or None when it is waited for no longer."""
        started_at = self.now
        lost, mute = self.likely(0.06), self.likely(0.06)
        gone = [False]

        def give_up() -> None:
            if not gone[0]:
                gone[0] = True
                answered(None, started_at)

        def back(answer: T) -> None:
            if not gone[0]:
                gone[0] = True
                answered(answer, started_at)

        def arrive() -> None:
            answer = do()
            if not mute:
                self.at(self.delay(), lambda: back(answer))

        if not lost:
            self.at(self.delay(), arrive)
        self.at(wait, give_up)

    def _clients(self) -> None:
        keyed = self.rng.random() < 0.5

        def enqueue() -> None:
            self.ask(self.row.enqueue, enqueued)

        def enqueued(answer: bool | None, since: float) -> None:
            if answer is None:
                self.note("enqueue", since, math.inf, answer="unknown")
                if keyed:
                    self.at(0.1, enqueue)
            else:
                self.note("enqueue", since, self.now, answer="ok")
                self._others()

        enqueue()

    def _others(self) -> None:
        for _ in range(self.rng.choice((0, 0, 1, 2, 4))):
            self.at(self.rng.choice((0.2, 1.0, 8.0)) * self.rng.random(), self._look)
        if self.rng.random() < 0.3:
            self.at(self.rng.choice((0.5, 6.0)) * self.rng.random(), self._cancel)
        if self.rng.random() < 0.03:
            self.at(3.0 * self.rng.random(), self.row.revoke)

    def _look(self) -> None:
        def seen(answer: tuple[str, int] | None, since: float) -> None:
            if answer is not None and answer[0] != "absent":
                token = answer[1] if self.rng.random() < 0.7 else 0
                self.note("seen", since, self.now, token, answer[0])

        self.ask(self.row.read, seen)

    def _cancel(self) -> None:
        def reports(answer: str | None, since: float) -> None:
            until = math.inf if answer is None else self.now
            self.note("cancel", since, until, answer=answer or "unknown")

        self.ask(self.row.cancel, reports)

    def _start_again(self) -> None:
        self.row.started = self.now

    def _fail_over(self) -> None:
        self.row.timeline += 1

    def _sweep(self) -> None:
        self.row.rescue(self.now)
        if self.row.state not in {"completed", "failed", "cancelled"} and not self._in_vain():
            self.at(self.rng.uniform(0.1, 0.6), self._sweep)

    def _worker(self) -> None:
        """A slot: claim, run, claim again."""
        if self.row.state in {"completed", "failed", "cancelled"} or self._in_vain():
            return

        def claimed(token: int | None, since: float) -> None:
            if token is None or self.likely(0.05):
                self.at(self.rng.uniform(0.1, 0.4), self._worker)
            else:
                pause = self.rng.uniform(0.5, 5.0) if self.likely(0.1) else 0.001
                self.at(pause, lambda: Handler(self, token).begin())

        self.ask(lambda: self.row.claim(self.now, self.lease), claimed)

    def _in_vain(self) -> bool:
        """Whether the job never came, and never will: no message is under way for that long."""
        return self.row.state == "absent" and self.now > _CALM_AFTER

    def again(self) -> None:
        """The slot is free again."""
        self.at(self.rng.uniform(0.01, 0.4), self._worker)


class Handler:
    """One running period, as its worker lives it."""

    def __init__(self, world: World, token: int) -> None:
        self.world = world
        self.token = token
        self.trusted = True

    def begin(self) -> None:
        """Run, unless it is given back before it starts."""
        world = self.world
        if world.likely(0.05):
            self._settle("released")
            return
        self._note("began")
        if world.likely(0.3):
            world.at(0.01, lambda: self._note("effect"))
        if world.likely(0.5):
            world.at(world.lease / 2, lambda: world.row.renew(self.token, world.now, world.lease))
        if world.likely(0.1):
            world.again()  # the worker dies, and another takes its place
            return
        if world.likely(0.15):  # the process dies, and its parent says so
            self._settle(world.rng.choice(("died", "died", "crashed", "stood_still")))
            return
        slow = world.likely(0.2)
        pause = world.rng.uniform(1.0, 5.0) if slow else world.rng.uniform(0.01, 0.3)
        self.trusted = not (slow and world.rng.random() < 0.3)
        world.at(pause, self._end)

    def _note(self, what: str) -> None:
        ends = what in {"returned", "raised"}
        self.world.note(what, self.world.now, math.inf if ends else self.world.now, self.token)

    def _end(self) -> None:
        world = self.world
        if world.likely(0.25):
            self._note("raised")
            self._settle("failed", retry=world.rng.random() < 0.95)
        elif world.likely(0.12):
            self._settle(world.rng.choice(("timed_out", "snoozed", "released", "cancelled")))
        elif world.writes:
            self._commit()
        else:
            self._note("returned")
            if world.unstorable:
                self._settle("failed", retry=False)
            else:
                self._settle("completed", result=self.token)

    def _commit(self) -> None:
        world = self.world
        if not self.trusted:
            world.note("commit", world.now, world.now, self.token, "refused")
            self._note("raised")
            self._settle("released")
            return

        def commit() -> bool:
            return world.row.commit(self.token, world.now)

        def answered(held: bool | None, since: float) -> None:
            if held:
                world.note("commit", since, world.now, self.token, "ok")
                world.again()
                return
            unknown = held is None
            until = math.inf if unknown else world.now
            world.note("commit", since, until, self.token, "unknown" if unknown else "refused")
            self._note("raised")
            self._settle("failed" if unknown else "snoozed")

        world.ask(commit, answered)

    def _settle(
        self, outcome: str, *, retry: bool = True, result: int | None = None, tries: int = 3
    ) -> None:
        """Sent until it is answered, a few times; the second is as good as the first."""
        world = self.world

        def settle() -> bool:
            if world.row.settle(self.token, outcome, world.now, retry=retry):
                world.row.result = result
            return True

        def answered(done: bool | None, since: float) -> None:
            if done is None and tries:
                self._settle(outcome, retry=retry, result=result, tries=tries - 1)
            else:
                world.again()

        world.ask(settle, answered)


def history(seed: int, store: type[Row] = Row) -> JobHistory:
    """The history of one job, sound if the store is."""
    return World(seed, store).history(job_id=seed)
