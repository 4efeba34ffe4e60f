"""The judge: pure functions over the ledger's marks and the rows read from the store.

Each returns one line for each violation, or the figures to compare with a bound. The rule (I11): an
innocent job never fails, never loses an attempt, and never waits longer than its bound.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.justice.ledger import DYING, END, FAILED, START

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from proof.justice.ledger import Mark

Period = tuple[int, int]
POISON = "poison"
BAR = 1.3
UNEXPLAINED = "nothing"
# A process that says it dies may be killed with its parent within this, in seconds.
TOGETHER = 0.5


@dataclass(frozen=True, slots=True)
class Fate:
    """A job's row at the end of the run. Counters that the schema lacks have the value None."""

    job: int
    state: str
    reason: str | None
    attempt: int
    losses: int
    worker_losses: int | None = None
    deaths: int | None = None


@dataclass(frozen=True, slots=True)
class Innocent:
    """A job that does nothing wrong, but fails its first attempts if it says so."""

    job: int
    seconds: float
    fails: int = 0


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault in force from `at` to `until`; with `pids`, only in these processes and below."""

    kind: str
    at: float
    until: float
    pids: frozenset[int] = frozenset()

    def hits(self, mark: Mark) -> bool:
        """Whether the process that wrote the mark was struck."""
        return not self.pids or mark.pid in self.pids or mark.parent in self.pids


@dataclass(frozen=True, slots=True)
class Claim:
    """A running period as the store recorded it, by the child that had claimed the job."""

    job: int
    token: int
    pid: int | None
    at: float
    until: float

    def struck_by(self, strike: Strike) -> bool:
        """Whether the strike fell on the child while it held the job."""
        held = self.at <= strike.until and strike.at <= self.until
        return held and (not strike.pids or self.pid in strike.pids)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long an interrupted innocent waited for its next start after the strike was over; `rank`
    is its place among those that the same strike interrupted."""

    job: int
    token: int
    kind: str
    seconds: float
    rank: int
    duration: float

    def bound(self, lease: float, cores: int) -> float:
        """The longest wait that the rules allow, for a suspect of a shared crash."""
        return BAR * lease + self.rank / (2 * cores) * self.duration

    def __str__(self) -> str:
        return f"job {self.job} token {self.token}: {self.kind}, {self.seconds:.2f} s"


def failed(innocents: Iterable[Innocent], fates: Mapping[int, Fate]) -> list[str]:
    """Innocents that ended otherwise than completed, or are gone. Live ones are judged by
    `unfinished`."""
    found = []
    for innocent in innocents:
        fate = fates.get(innocent.job)
        if fate is None:
            found.append(f"job {innocent.job}: no row")
        elif fate.state not in ("completed", "queued", "running"):
            found.append(f"job {innocent.job}: {fate.state}, {fate.reason}")
    return found


def unfinished(jobs: Iterable[int], fates: Mapping[int, Fate]) -> list[str]:
    """Jobs that had not ended when the run did."""
    live = ("queued", "running")
    return [f"job {j}: {fates[j].state}" for j in jobs if j in fates and fates[j].state in live]


def charged(innocents: Iterable[Innocent], marks: Iterable[Mark]) -> list[str]:
    """Starts of innocents whose attempt number is more than one above their own failures. A failure
    that was not settled before a crash is run again under its number, and counts once."""
    known = {innocent.job for innocent in innocents}
    own: dict[int, set[int]] = defaultdict(set)
    found = []
    for mark in sorted(marks, key=lambda mark: mark.at):
        if mark.job not in known:
            continue
        if mark.kind == START and mark.attempt > len(own[mark.job]) + 1:
            found.append(
                f"job {mark.job} token {mark.token}: began attempt {mark.attempt}, "
                f"its own failures were {len(own[mark.job])}"
            )
        if mark.kind == FAILED:
            own[mark.job].add(mark.attempt)
    return found


def unproven(
    innocents: Iterable[Innocent], fates: Mapping[int, Fate], marks: Iterable[Mark]
) -> list[str]:
    """Innocents that the store calls completed and whose handler never reached its end."""
    ended = {mark.job for mark in marks if mark.kind == END}
    return [
        f"job {i.job}: completed without an end in the ledger"
        for i in innocents
        if i.job in fates and fates[i.job].state == "completed" and i.job not in ended
    ]


def periods(marks: Iterable[Mark]) -> dict[Period, list[Mark]]:
    """The marks of each running period, in order."""
    found: dict[Period, list[Mark]] = defaultdict(list)
    for mark in sorted(marks, key=lambda mark: mark.at):
        found[mark.period].append(mark)
    return dict(found)


def overlaps(marks: Iterable[Mark], slack: float = 0.0) -> list[str]:
    """Running periods of one job that were at work side by side."""
    by_job: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for (job, token), own in periods(marks).items():
        by_job[job].append((own[0].at, own[-1].at, token))
    found = []
    for job, spans in by_job.items():
        spans.sort(key=lambda span: span[2])
        for (_, last, token), (first, _, later) in itertools.pairwise(spans):
            if first + slack < last:
                found.append(f"job {job}: {token} and {later} for {last - first:.2f} s")
    return found


def after_end(marks: Iterable[Mark], ends: Mapping[Period, float], slack: float = 0.0) -> list[str]:
    """Running periods that had effects after the last end of their lease that was seen."""
    found = []
    for period, own in periods(marks).items():
        end = ends.get(period)
        if end is not None and own[-1].at > end + slack:
            found.append(f"job {period[0]} token {period[1]}: {own[-1].at - end:.2f} s late")
    return found


def crashes(marks: Iterable[Mark]) -> list[Strike]:
    """One strike for each process that a handler said it takes down."""
    return [
        Strike("crash", mark.at, mark.at, frozenset({mark.pid}))
        for mark in marks
        if mark.kind == DYING
    ]


def waits(
    innocents: Sequence[Innocent],
    marks: Iterable[Mark],
    strikes: Sequence[Strike],
    claims: Iterable[Claim] = (),
) -> list[Wait]:
    """For each running period of an innocent that was interrupted: how long until it ran again.
    One that no strike explains has the kind `nothing`, and waits from its last mark. Where it was
    claimed meanwhile and struck again before it began, it waits from that strike."""
    claimed: dict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        claimed[claim.job].append(claim)
    durations = {innocent.job: innocent.seconds for innocent in innocents}
    by_job: dict[int, list[list[Mark]]] = defaultdict(list)
    for (job, _), own in sorted(periods(marks).items()):
        if job in durations:
            by_job[job].append(own)
    found: dict[Strike | None, list[tuple[float, Mark]]] = defaultdict(list)
    for own_periods in by_job.values():
        for own, later in zip(own_periods, [*own_periods[1:], None], strict=True):
            if own[-1].kind in (END, FAILED):
                continue
            begins = later[0].at if later else math.inf
            strike = _cause(own, begins, strikes)
            since = own[-1].at if strike is None else strike.until
            next_token = later[0].token if later else math.inf
            unbegun = [c for c in claimed[own[0].job] if own[0].token < c.token < next_token]
            again = [s.until for c in unbegun for s in strikes if c.struck_by(s)]
            found[strike].append((begins - max([since, *again]), own[0]))
    return [
        Wait(
            mark.job,
            mark.token,
            UNEXPLAINED if strike is None else strike.kind,
            seconds,
            rank,
            durations[mark.job],
        )
        for strike, waited in found.items()
        for rank, (seconds, mark) in enumerate(sorted(waited, key=lambda w: w[0]), 1)
    ]


def _cause(own: Sequence[Mark], begins: float, strikes: Sequence[Strike]) -> Strike | None:
    """The first strike that was not over at the period's last mark, else the last one before."""
    hits = sorted(
        (s for s in strikes if own[0].at <= s.until and s.at < begins and s.hits(own[0])),
        key=lambda strike: strike.at,
    )
    return next((s for s in hits if s.until >= own[-1].at), hits[-1] if hits else None)


def late(found: Iterable[Wait], lease: float, cores: int) -> list[str]:
    """Waits beyond their bound."""
    return [
        f"{wait} (bound {wait.bound(lease, cores):.2f} s)"
        for wait in found
        if wait.seconds > wait.bound(lease, cores)
    ]


def own_deaths(
    marks: Sequence[Mark], parents: Collection[int]
) -> tuple[Counter[int], Counter[int]]:
    """How often each job took down a process that it had for itself: one whose parent is a child
    of a worker and not the worker's parent. The second count is of deaths that may be another's:
    the child was taken down at the same time, or another job had run in the process before."""
    begun: dict[int, set[int]] = defaultdict(set)
    for mark in marks:
        begun[mark.pid].add(mark.job)
    dying = [mark for mark in marks if mark.kind == DYING]
    shared = [mark for mark in dying if mark.parent in parents]
    certain: Counter[int] = Counter()
    doubtful: Counter[int] = Counter()
    for mark in dying:
        if mark.parent not in parents:
            under = [s for s in shared if s.pid == mark.parent and abs(s.at - mark.at) < TOGETHER]
            shares = len(begun[mark.pid]) > 1
            (doubtful if under or shares else certain)[mark.job] += 1
    return certain, doubtful


def deaths(marks: Iterable[Mark]) -> Counter[int]:
    """How often each job took a process down, its own or a shared one."""
    return Counter(mark.job for mark in marks if mark.kind == DYING)


def not_poison(pills: Iterable[int], fates: Mapping[int, Fate]) -> list[str]:
    """Guilty jobs that did not end as poison."""
    return [
        f"job {job}: {fates[job].state if job in fates else 'no row'}, "
        f"{fates[job].reason if job in fates else None}"
        for job in pills
        if job not in fates or (fates[job].state, fates[job].reason) != ("failed", POISON)
    ]


def not_exactly(
    count: int,
    pills: Iterable[int],
    seen: Mapping[int, int],
    doubtful: Mapping[int, int] | None = None,
) -> list[str]:
    """Guilty jobs that were ended after more or fewer deaths than this; doubtful ones may count."""
    more = doubtful or {}
    return [
        f"job {job}: {seen.get(job, 0)}, doubtful {more.get(job, 0)}"
        for job in pills
        if not seen.get(job, 0) <= count <= seen.get(job, 0) + more.get(job, 0)
    ]


def begun_twice(jobs: Iterable[int], marks: Iterable[Mark]) -> list[str]:
    """Jobs whose handler began more than once."""
    starts = Counter(mark.job for mark in marks if mark.kind == START)
    return [f"job {job}: began {starts[job]} times" for job in jobs if starts[job] > 1]


def longest_gap(instants: Iterable[float], since: float, until: float) -> float:
    """The longest time between two neighbors of these instants, both ends of the watch included."""
    at = sorted([since, *(i for i in instants if since <= i <= until), until])
    return max((b - a for a, b in itertools.pairwise(at)), default=0.0)
