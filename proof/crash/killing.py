"""SIGKILL to children and to whole workers, with a backlog of due jobs behind and with none."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from proof.crash import jobs, losses, through
from proof.crash.fleet import Shape
from proof.crash.losses import Blow
from support.processes import send

if TYPE_CHECKING:
    from proof.crash.harness import Bed
    from proof.crash.way import Way
    from proof.report import Report

# A lost job runs in a process of its own next, which costs half a second of a core to start:
# few slots and not too many kills at once, or what is measured is the machine.
SHAPE = Shape(workers=3, processes=2, slots=2)
BAR = 1.3
_BUSY = SHAPE.all_slots // 2
_GAP = (0.8, 2.6)
_AIM_WITHIN = 1.5
_SHARE_OF_PARENTS = 0.3
_DRAIN_WITHIN = 90.0
# One that is just starting holds nothing yet, and notices when it has loaded its modules.
_OUTLIVE = 3 * jobs.LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of it; `waiting` jobs are due all the time and are never all done. `through` is a
    part whose handlers use other drivers: what is timed is then their loading, and not judged."""

    kills: int
    jobs: int
    waiting: int = 0
    through: str | None = None

    @property
    def longest(self) -> float:
        """By when it must be over, in seconds; far more than it takes."""
        return 60 + 4 * self.kills + self.jobs / 5


def run(bed: Bed, report: Report, plan: Plan, way: Way) -> None:
    """Kill until the plan is fulfilled, let everything end, and close the accounts."""
    if plan.waiting:
        # A few more than must be waiting, as some will have their turn.
        spare = 1_500 + 200 * plan.kills
        backlog = [way.waiting(bed.rng) for _ in range(plan.waiting + spare)]
        bed.enqueue(backlog, counted=False)
    with bed:
        blows = _kill(bed, plan, way)
        bed.all_end(_DRAIN_WITHIN)
        # What was lost last, also of the backlog, has its turn before the workers drain.
        time.sleep(2 * jobs.LEASE)
    [(waiting,)] = bed.rows(
        "SELECT count(*) FROM tenure.job WHERE state = 'queued' AND priority = %(low)s",
        low=jobs.PRIORITY_OF_BACKLOG,
    )
    report.at_least("SIGKILLs", len(blows), plan.kills)
    parents = sum(blow.kind == "parent" for blow in blows)
    report.note("  of whole parents", parents)
    for phase in ("any", *way.phases):
        report.note(f"  while a handler was: {phase}", sum(b.phase == phase for b in blows))
    report.at_least("jobs", len(bed.enqueued), plan.jobs)
    if plan.waiting:
        report.at_least("due jobs still waiting at the end", waiting, plan.waiting)
    way.settle(bed, report)
    # Who was starting ends when its modules are loaded, however long that takes.
    outlived = bed.fleet.outlived
    report.none("processes that outlived their parent by three leases", outlived, timed=True)
    found = losses.find(bed, blows)
    losses.tell(report, found)
    if plan.through is None:
        # What dies alone is settled by its parent, at once; only what dies whole is waited for.
        whole = [loss for loss in found.struck if loss.kind == "parent"]
        for of, struck in (("", found.struck), (", of whole workers", whole)):
            if struck or not of:
                report.at_most(
                    f"until running elsewhere, a slot being free, p99{of}",
                    losses.quantile((loss.slot_free for loss in struck), 0.99),
                    BAR * jobs.LEASE,
                    " s",
                )


def _kill(bed: Bed, plan: Plan, way: Way) -> list[Blow]:
    blows: list[Blow] = []
    maker = way.killed if plan.through is None else partial(through.make, plan.through)
    pump = partial(bed.pump, maker, busy=_BUSY)
    give_up_at = time.monotonic() + plan.longest
    next_at = time.monotonic() + bed.rng.uniform(*_GAP)
    while len(blows) < plan.kills or len(bed.enqueued) < plan.jobs:
        pump()
        if time.monotonic() > give_up_at:
            break
        if time.monotonic() < next_at or len(blows) == plan.kills:
            continue
        worker = bed.rng.choice(bed.fleet.workers)
        offspring = worker.children()
        if not offspring:
            continue
        whole = bed.rng.random() < _SHARE_OF_PARENTS
        struck = offspring if whole else [bed.rng.choice(offspring)]
        phase = bed.rng.choice(("any", *way.phases))
        aim_until = time.monotonic() + _AIM_WITHIN
        seen = phase == "any"
        while not seen and time.monotonic() < aim_until:
            seen = any(n.phase == phase and any(map(n.of, struck)) for n in pump())
        # Others may have died meanwhile, by the worker's own ladder.
        struck = [pid for pid in worker.children() if whole or pid in struck]
        if not struck:
            continue
        family = worker.family() if whole else []
        at = bed.now()
        if whole:
            worker.dismiss(signal.SIGKILL)
        else:
            send(struck[0], signal.SIGKILL)
        kind = "parent" if whole else "child"
        blows.append(Blow(at, kind, phase if seen else "any", tuple(struck)))
        if whole:
            bed.fleet.bury(worker, family, within=_OUTLIVE)
            bed.fleet.supervise()
        next_at = time.monotonic() + bed.rng.uniform(*_GAP)
    return blows
