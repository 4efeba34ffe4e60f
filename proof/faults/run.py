"""One run: jobs arrive and run, nemeses strike, all of them are undone, all jobs end."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from proof.faults.history import REQUESTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.faults.harness import Bed
    from proof.faults.nemeses.base import Nemesis
    from proof.faults.ticks import Ticks
    from proof.report import Report

_STEP = 0.05
_AT_ONCE = 3
_PACE_EVERY = 1.0
# For how many seconds more jobs come, each time.
_MORE = 5.0
_OPEN = "SELECT count(*) FROM tenure.job"
_ENDED = (
    "SELECT (SELECT count(*) FROM tenure.job_archive) + (SELECT count(*) FROM tenure.job_failed)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many jobs of which kinds, and how fast they come; each nemesis strikes at least once."""

    seed: int
    jobs: int
    rate: float
    # How far apart strikes are, if not as in the world.
    heavy_every: tuple[float, float] | None = None
    longest: float = 600.0
    # Which jobs: see `workload.shares`.
    kinds: str = "rare"
    # A job is stuck if nothing is broken and no job has ended for this long.
    end_within: float = 45.0


class Run:
    """Runs nemeses until the client has enqueued all jobs, then undoes everything."""

    def __init__(
        self,
        bed: Bed,
        report: Report,
        plan: Plan,
        nemeses: Sequence[Nemesis],
        *,
        ticks: Ticks,
        light_every: tuple[float, float],
        heavy_every: tuple[float, float],
    ) -> None:
        self.stuck = 0
        self.caught_up = False
        # Clients that ended by themselves with work left to do.
        self.fallen: list[str] = []
        self._bed = bed
        self._ticks = ticks
        self._report = report
        self._plan = plan
        self._light_every = light_every
        self._heavy_every = heavy_every
        self._end = plan.jobs
        self._light = [nemesis for nemesis in nemeses if nemesis.light]
        self._heavy = [nemesis for nemesis in nemeses if not nemesis.light]
        self.unmet = list(nemeses)
        self._in_force: list[tuple[float, float, Nemesis]] = []
        self._next_light = self._next_heavy = self._next_pace = 0.0
        self._ended = (time.monotonic(), 0)

    def go(self) -> None:
        """Do all of it; `stuck` is how many jobs did not end."""
        try:
            self._let_loose()
        finally:
            self._restore()
        self.caught_up = self._ticks.end(self._bed.supervise)
        self._await_end()

    def _let_loose(self) -> None:
        """Until all jobs were asked for, and each nemesis has had its turn."""
        give_up_at = time.monotonic() + self._plan.longest
        self._send_client(0)
        while time.monotonic() < give_up_at:
            self._bed.supervise()
            self._look()
            self._relieve(time.monotonic())
            if self._client_done():
                if not self.unmet:
                    break
                # A nemesis that has not had its turn needs a worker at work.
                self._end += int(_MORE * self._plan.rate)
                self._send_client(self._next_label())
            self._strike()
            self._tell_pace()
            time.sleep(_STEP)

    def _restore(self) -> None:
        """Relieve what is in force, then finish with all of them, whatever one of them raises: the
        posts end after this, and a worker that is still frozen would not even die."""
        undoings = [partial(self._over, one) for one in self._in_force]
        undoings += [partial(one.finish, self._bed) for one in (*self._light, *self._heavy)]
        errors: list[Exception] = []
        for fix in undoings:
            try:
                fix()
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)
        if errors:
            raise ExceptionGroup("not all faults could be undone", errors)

    def _send_client(self, first: int) -> None:
        plan = self._plan
        self._bed.send_client(plan.seed, first, self._end, plan.rate, plan.kinds)

    def _client_done(self) -> bool:
        """Whether all jobs were asked for; a client that was killed has a successor."""
        ended = self._bed.client_ended
        if ended is None or ended == 0:
            return ended == 0
        if not self._bed.client_killed:
            self.fallen.append(f"exit code {ended}; see client.log")
        self._send_client(self._next_label())
        return False

    def _next_label(self) -> int:
        with self._bed.history.open() as lines:
            request = (line.split() for line in lines if line.startswith(f"{REQUESTED} "))
            return max((int(words[5]) + int(words[3]) for words in request), default=0)

    def _strike(self) -> None:
        now = time.monotonic()
        rng = self._bed.rng
        if now >= self._next_light and self._light:
            self._next_light = now + rng.uniform(*self._light_every)
            self._begin(self._choose(self._light), now)
        busy = sum(not nemesis.light for _, _, nemesis in self._in_force)
        if now >= self._next_heavy and busy < _AT_ONCE and self._heavy:
            self._next_heavy = now + rng.uniform(*self._heavy_every)
            self._begin(self._choose(self._heavy), now)

    def _choose(self, nemeses: Sequence[Nemesis]) -> Nemesis:
        """One of them by the seed, of those that have not had their turn if there are such."""
        unmet = [nemesis for nemesis in nemeses if nemesis in self.unmet]
        return self._bed.rng.choice(unmet or nemeses)

    def _begin(self, nemesis: Nemesis, now: float) -> None:
        if any(other is nemesis for _, _, other in self._in_force):
            return
        lasts = nemesis.strike(self._bed)
        if lasts is not None:
            self._in_force.append((now + lasts, now, nemesis))

    def _look(self) -> None:
        for place, (_, since, nemesis) in enumerate(self._in_force):
            with contextlib.suppress(psycopg.OperationalError):
                if nemesis.look(self._bed):
                    self._in_force[place] = (0.0, since, nemesis)

    def _relieve(self, now: float) -> None:
        for one in [one for one in self._in_force if one[0] <= now]:
            self._over(one)

    def _over(self, one: tuple[float, float, Nemesis]) -> None:
        self._in_force.remove(one)
        _, since, nemesis = one
        count = nemesis.relieve(self._bed)
        for _ in range(count):
            self._report.fault(nemesis.name, time.monotonic() - since)
        if count and nemesis in self.unmet:
            self.unmet.remove(nemesis)

    def _tell_pace(self) -> None:
        now = time.monotonic()
        if now >= self._next_pace:
            self._next_pace = now + _PACE_EVERY
            with contextlib.suppress(psycopg.OperationalError):
                [(ended,)] = self._bed.rows(_ENDED)
                since, before = self._ended
                rate = (ended - before) / (now - since)
                self._report.pace.append((now - self._report.began_at, rate))
                self._ended = now, ended

    def _await_end(self) -> None:
        """Nothing is broken any more: jobs end, one after another, until none is left."""
        least, give_up_at = math.inf, time.monotonic() + self._plan.end_within
        # Under a bug they may end ever so slowly; what was seen by then is enough.
        at_the_latest = give_up_at if self._bed.bug else math.inf
        while time.monotonic() < min(give_up_at, at_the_latest):
            self._bed.supervise()
            self._tell_pace()
            with contextlib.suppress(psycopg.OperationalError):
                [(self.stuck,)] = self._bed.rows(_OPEN)
                if not self.stuck:
                    return
                if self.stuck < least:
                    least, give_up_at = self.stuck, time.monotonic() + self._plan.end_within
            time.sleep(0.2)
