"""`just prove faults [--runs N] [--jobs N] [--seed N] [--short]`: runs with nemeses by the seed.

A run is named by its seed, and can be done again by itself: `just prove faults --seed N`.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
from contextlib import ExitStack, nullcontext
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from proof import timeline
from proof.faults import history, jobs, verdict
from proof.faults.harness import Bed
from proof.faults.run import Plan, Run
from proof.faults.ticks import Ticks
from proof.faults.witness import TAKEN, Witness
from proof.faults.workload import shares
from proof.faults.worlds import WORLDS
from proof.poller import LOOKS, OFTEN
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from proof.schedules.checker import Findings

_DIRECTORY = ROOT / ".cache/proof/faults"
_RATE = 1500.0
# As long as it takes for every nemesis to have its turn.
_SHORT = 3_000
_SHORT_RATE = 80.0
# What a crash may lose depends on these.
_DURABILITY = """
SELECT s.name, s.setting FROM pg_settings AS s
WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY s.name
"""
# What the issue of a run is judged by, in the words of the invariants.
INVARIANTS = {
    "I1": "acknowledged jobs lost",
    "I2": "second or stale results accepted",
    "I3": "leases valid beside each other",
    "I4": "effects in the job's transaction lost or doubled",
    "I6": "jobs stuck",
    "I8": "tokens that did not grow, or were handed out twice",
    "I9": "attempts or losses past their cap",
    "I10": "jobs that conservation does not explain",
}


def _directory(world: str, plan: Plan) -> Path:
    """Where a run has its logs, and beside them its report."""
    return _DIRECTORY / f"{world}-{plan.seed}"


def run(world: str, plan: Plan, *, short: bool, only: Sequence[str], bug: str | None) -> Report:
    """One run on servers of its own; its picture is beside its logs."""
    rng = Random(f"{plan.seed} {world}")  # noqa: S311 - to be repeated
    directory = _directory(world, plan)
    shutil.rmtree(directory, ignore_errors=True)
    about = {"seed": plan.seed, "world": world, "lease": jobs.LEASE, "bug": bug, "short": short}
    report = Report(about)
    report.part(f"{world}, seed {plan.seed}")
    with ExitStack() as stack:
        ground = WORLDS[world](stack)
        # Where no handler leaves effects elsewhere, there is no need of a second server.
        elsewhere = "touch" in shares(plan.kinds)
        effects = stack.enter_context(Cluster(15)) if elsewhere else ground.cluster
        size = {"posts": ground.posts, "slots": ground.slots}
        bed = Bed(ground.cluster, effects, directory, rng, bug, kept=stack, **size)
        ticks = Ticks(bed.url)
        nemeses = ground.nemeses if short else ground.choose(rng)
        if only:
            nemeses = ground.only(only)
        course = Run(
            bed,
            report,
            plan,
            nemeses,
            ticks=ticks,
            light_every=ground.light_every,
            heavy_every=plan.heavy_every or ground.heavy_every,
        )
        witness = Witness(bed.url) if ground.true_clock else None
        with bed, witness or nullcontext():
            course.go()
            bred = bed.processes.members
            report.about |= dict(bed.rows(_DURABILITY))
        report.none("clients that ended by themselves with work left", course.fallen)
        report.none("enqueues by key that were given up", history.given_up(bed.history))
        report.none("workers that ended by themselves", bed.deserted)
        for kind, at in history.harms(bed.history):
            report.faults.append((kind, at - report.began_at, at - report.began_at))
        _tell(report, verdict.reach(bed, witness), course, plan, witness)
        if ground.true_clock:
            _tell_ticks(report, ticks.check(), course)
        report.none("processes that a fork bomb left behind", bred)
        if all(nemesis.gentle for nemesis in nemeses):
            # Leases of 3 s, which a machine that stands still for as long takes from anybody.
            taken = bed.rows(TAKEN)
            report.none("I9: leases lost without a struck worker", taken, timed=True)
    timeline.draw(report, directory.with_suffix(".svg"))
    return report


def _tell(
    report: Report, found: verdict.Verdict, course: Run, plan: Plan, witness: Witness | None
) -> None:
    report.jobs = found.jobs
    report.at_least("jobs", found.jobs, plan.jobs * 0.5)
    report.note("acknowledged to a client", found.acknowledged)
    report.note("asked for and never answered", found.unknown)
    report.note("faults", len(report.faults))
    # They had ten minutes in which to find a worker to strike.
    unmet = [nemesis.name for nemesis in course.unmet]
    report.none("nemeses that never struck", unmet, timed=True)
    for name, counted in (("ended", found.states), ("attempt ended", found.endings)):
        for state, count in sorted(counted.items()):
            report.note(f"{name}: {state}", count)
    report.note("stale results refused and kept as evidence", found.refused)
    report.note("late results, accepted as no other worker had taken the job", found.late)
    # What is stuck is told from what is slow by a wait, also below.
    stuck = course.stuck
    report.at_most("jobs that do not end though nothing is broken", stuck, 0, timed=True)
    if witness is not None:
        report.at_least(LOOKS, witness.pace, OFTEN)
        report.note("extensions of leases, each judged", found.extended)
    for invariant, words in INVARIANTS.items():
        broken = [one for one in found.violations if one.invariant == invariant]
        # Where no one checked the leases, an empty list proves nothing.
        if broken or invariant != "I3" or witness is not None:
            report.none(f"{invariant}: {words}", broken, timed=invariant == "I6")


def _tell_ticks(report: Report, found: Findings, course: Run) -> None:
    report.note("ticks of schedules", found.checked)
    behind = not course.caught_up
    # They had a minute; until then ticks are absent.
    report.at_most("schedules that never caught up", int(behind), 0, timed=True)
    report.none("I7: ticks without one job or one recorded miss", found.mismatches, timed=behind)


def main(argv: list[str]) -> int:
    """Run them; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove faults", description=__doc__)
    parser.add_argument(
        "worlds", nargs="*", help=f"of: {', '.join(WORLDS)} (the first three, in turn)"
    )
    parser.add_argument("--short", action="store_true", help="each world once, every nemesis")
    parser.add_argument(
        "--runs", type=int, default=1, help="how many, with seeds one after another"
    )
    parser.add_argument("--jobs", type=int, default=100_000, help="per run")
    parser.add_argument("--rate", type=float, default=_RATE, help="how many come per second")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--only", action="append", help="a nemesis, by its name; more by more")
    parser.add_argument(
        "--every", type=float, help="seconds between strikes, instead of the world's"
    )
    parser.add_argument("--kinds", default="rare", help="of jobs, as in workload.py")
    parser.add_argument(
        "--end-within",
        type=float,
        default=45.0,
        help="seconds from one end to the next, in the end",
    )
    parser.add_argument("--bug", help="a bug of proof/mutations for the workers, to see it caught")
    options = parser.parse_args(argv)
    chosen = options.worlds or ["plain", "clock", "disk"]
    missed = 0
    for number in range(len(chosen) if options.short else options.runs):
        plan = Plan(
            seed=options.seed + number,
            jobs=_SHORT if options.short else options.jobs,
            rate=_SHORT_RATE if options.short else options.rate,
            heavy_every=_heavy_every(options.every, short=options.short),
            kinds=options.kinds,
            end_within=options.end_within,
        )
        world = chosen[number % len(chosen)]
        go = partial(
            run, world, plan, short=options.short, only=options.only or (), bug=options.bug
        )
        path = _directory(world, plan).with_suffix(".json")
        missed |= tried(go, path, short=options.short, bug=options.bug)
    return missed


def _heavy_every(every: float | None, *, short: bool) -> tuple[float, float] | None:
    if every:
        return every, 1.3 * every
    return (1.5, 4.0) if short else None
