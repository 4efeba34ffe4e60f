"""What the leases of a process went through that was killed or stopped: how soon each of its jobs
ran elsewhere. All instants are the database's."""

from __future__ import annotations

import math
from bisect import bisect
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from proof.crash.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from proof.crash.harness import Bed
    from proof.report import Report

_ENDED = """
SELECT a.job_id, a.token, w.pid, a.started_at, a.ended_at, a.outcome,
    lead(a.started_at) OVER job AS next_at, row_number() OVER job = 1 AS fresh
FROM tenure.attempt AS a
LEFT JOIN tenure.worker AS w ON w.id = a.claimed_by
WINDOW job AS (PARTITION BY a.job_id ORDER BY a.token)
"""
# A claim that was on its way when the blow fell.
_IN_FLIGHT = timedelta(seconds=1)
_ENDED_BY_ITSELF = ("completed", "failed", "snoozed")


@dataclass(frozen=True, slots=True)
class Blow:
    """One signal to some children, by name of what was done, just after this instant."""

    at: datetime
    kind: str
    phase: str
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loss:
    """One lease whose holder was struck, and when its job ran again."""

    job_id: int
    token: int
    kind: str
    phase: str
    rescued: float
    elsewhere: float
    slot_free: float
    overtaken: int

    def __str__(self) -> str:
        return (
            f"job {self.job_id} token {self.token}: {self.kind} at {self.phase}, ended after "
            f"{self.rescued:.2f} s, ran elsewhere after {self.elsewhere:.2f} s (a slot being free: "
            f"{self.slot_free:.2f} s), while {self.overtaken} fresh jobs were claimed"
        )


@dataclass(frozen=True, slots=True)
class Losses:
    """All losses, and the leases that expired although no fault struck their holder."""

    struck: list[Loss]
    unstruck: list[str]


def find(bed: Bed, blows: Sequence[Blow]) -> Losses:
    """Match ended running periods with the blows to their holders."""
    by_child: dict[int, list[Blow]] = {}
    for blow in blows:
        for child in blow.children:
            by_child.setdefault(child, []).append(blow)
    holders = {(n.job_id, n.token): (n.pid, n.parent) for n in bed.history.lines}
    losses = Losses([], [])
    rows = bed.rows(_ENDED)
    slots = Slots(bed, blows)
    first_claims = sorted(row[3] for row in rows if row[-1])
    for row in rows:
        job_id, token, pid, started_at, ended_at, outcome, next_at, _ = row
        # A child that died before its first beat is known by what its handlers wrote.
        pids = (pid,) if pid is not None else holders.get((job_id, token), ())
        near = [
            b
            for p in pids
            for b in by_child.get(p, ())
            if started_at - _IN_FLIGHT <= b.at <= ended_at
        ]
        if outcome in _ENDED_BY_ITSELF:
            continue
        if near:
            blow = near[-1]
            struck_at = max(blow.at, started_at)
            rescued = (ended_at - struck_at).total_seconds()
            elsewhere = slot_free = math.inf
            # A killed worker takes nothing again; a stopped one may.
            if next_at is not None:
                elsewhere = (next_at - struck_at).total_seconds()
                slot_free = rescued + slots.free(ended_at, next_at)
            overtaken = bisect(first_claims, next_at or ended_at) - bisect(first_claims, ended_at)
            losses.struck.append(
                Loss(
                    job_id,
                    token,
                    blow.kind,
                    blow.phase,
                    rescued,
                    elsewhere,
                    slot_free,
                    overtaken,
                )
            )
        elif outcome == "lost":
            losses.unstruck.append(f"job {job_id} token {token} at {started_at} by pid {pid}")
    return losses


def tell(report: Report, losses: Losses) -> None:
    """Note how the losses are spread."""
    times = sorted(loss.elsewhere for loss in losses.struck)
    report.note("leases lost by them", len(times))
    report.note("leases lost by a process that was left alone", len(losses.unstruck))
    # Those of a backlog were given two leases for it; the others are in the accounts.
    never = [time for time in times if math.isinf(time)]
    report.none("lost and never running elsewhere", never, timed=True)
    worst = sorted(losses.struck, key=lambda loss: -loss.elsewhere)[:10]
    report.figures[f"{report.title}: the longest"] = [str(loss) for loss in worst]
    report.figures[f"{report.title}: left alone"] = losses.unstruck[:20]
    for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
        report.note(f"until running elsewhere, {name}", quantile(times, share), " s")


def quantile(times: Iterable[float], share: float) -> float:
    """The nearest rank; nothing measured is never good enough."""
    ranks = sorted(times)
    return ranks[math.ceil(share * len(ranks)) - 1] if ranks else math.inf
