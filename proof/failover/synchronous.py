"""Patroni with a synchronous standby: primaries killed and changed again and again under load."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from proof.crash.fleet import Shape
from proof.crash.losses import quantile
from proof.failover import accounts
from proof.failover.harness import Bed
from support.patroni import Patroni
from support.processes import wait_for

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report
    from support.patroni import Member

    Done = tuple["Kind", float, float]

_SHAPE = Shape(workers=2, processes=1, slots=4)
_CLIENTS, _LANES, _DEADLINE = 2, 3, 4.0
_LOAD = (0.5, 2.0)
_LEAD_WITHIN = 60.0
_TRIES = 6
_FORM_WITHIN = 90.0


class Kind(StrEnum):
    """What is done to the members; all but the last make the standby lead."""

    SERVER = "kill -9 of the primary"
    SWITCH = "switchover"
    BOTH = "kill -9 of Patroni and the primary"
    STANDBY = "kill -9 of the synchronous standby"


def plan(failovers: int, rng: Random) -> list[Kind]:
    """What is done, in which order: each kind at least once, the slow one seldom."""
    leading = (Kind.SERVER, Kind.SWITCH, Kind.BOTH)
    rest = rng.choices(leading, (60, 35, 5), k=failovers - len(leading))
    kinds = [*leading, *rest, *[Kind.STANDBY] * max(1, failovers // 10)]
    rng.shuffle(kinds)
    return kinds


def run(directory: Path, report: Report, rng: Random, failovers: int, bug: str | None) -> None:
    """Fail over so often, let everything end, and close the accounts."""
    done: list[Done] = []
    stuck: list[str] = []
    with Patroni() as patroni, Bed(patroni.url(), directory, bug) as bed:
        began_at = _timeline(bed)
        bed.hire(_SHAPE)
        for number in range(_CLIENTS):
            bed.call(f"c{number}", lanes=_LANES, deadline=_DEADLINE)
        bed.served(_CLIENTS)
        for kind in plan(failovers, rng):
            time.sleep(rng.uniform(*_LOAD))
            # A slow machine makes Patroni fail over by itself now and then.
            patroni.formed(2, _FORM_WITHIN)
            at = time.monotonic()
            recovered = _strike(patroni, kind)
            done.append((kind, at, time.monotonic()))
            report.fault(kind, time.monotonic() - at)
            if not recovered:
                stuck.append(f"{kind}: {patroni.roles()}")
        codes = bed.hush()
        bed.all_end()
        bed.dismiss()
        report.at_least("failovers, by the timeline", _timeline(bed) - began_at, failovers)
        for kind in Kind:
            report.note(f"  {kind}", sum(one is kind for one, _, _ in done))
        # That is for Patroni to do, as fast as the machine lets it.
        report.none("without a primary and its standby after a minute", stuck, timed=True)
        report.none("clients that gave up", [code for code in codes if code])
        report.none("workers that ended", bed.ended)
        accounts.settle(bed, report)
        report.none("effects acknowledged to handlers and lost", accounts.effects_lost(bed))
        _tell(bed, report, done)


def _strike(patroni: Patroni, kind: Kind) -> bool:
    """Do it, and wait until there are a primary and its synchronous standby again."""
    leader, standby = patroni.leader(), patroni.standby()
    if leader is None or standby is None:
        return False
    match kind:
        case Kind.SWITCH:
            changed = any(_switched(patroni, leader, standby) for _ in range(_TRIES))
        case Kind.STANDBY:
            before = standby.postmaster
            standby.kill_server()
            changed = wait_for(lambda: standby.postmaster not in (None, before), _LEAD_WITHIN)
        case Kind.SERVER:
            leader.kill_server()
            changed = wait_for(lambda: _leads_another(patroni, leader), _LEAD_WITHIN)
        case Kind.BOTH:
            leader.kill_all()
            changed = wait_for(lambda: _leads_another(patroni, leader), _LEAD_WITHIN)
            leader.start()
        case _:
            assert_never(kind)
    return changed and patroni.formed(2, _FORM_WITHIN)


def _switched(patroni: Patroni, leader: Member, standby: Member) -> bool:
    patroni.switch(leader, standby)
    return wait_for(lambda: _leads_another(patroni, leader), _LEAD_WITHIN / _TRIES)


def _leads_another(patroni: Patroni, old: Member) -> bool:
    leader = patroni.leader()
    return leader is not None and leader is not old


def _timeline(bed: Bed) -> int:
    [(timeline,)] = bed.rows("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)")
    return int(timeline, 16)


def _tell(bed: Bed, report: Report, done: list[Done]) -> None:
    book = bed.book()
    for kind in Kind:
        gaps = [book.gap(at, until) for one, at, until in done if one is kind]
        report.note(f"without an acknowledgement, {kind}, p50", quantile(gaps, 0.5), " s")
        report.note(f"without an acknowledgement, {kind}, max", quantile(gaps, 1), " s")
    whole = [until - at for _, at, until in done]
    report.note("until a synchronous standby is back, p50", quantile(whole, 0.5), " s")
    hours = (done[-1][2] - done[0][1]) / 3600
    failovers = sum(kind is not Kind.STANDBY for kind, _, _ in done)
    report.note("failovers per hour", round(failovers / hours))
    for what in ("unknown", "refused"):
        report.note(f"answers {what}, asked again with the key", book.count_answers(what))
        values = {text: count for text, count in book.why.items() if text.startswith(what)}
        report.figures[f"{report.title}: answers {what}, asked again with the key"]["some"] = values
    for outcome, count in bed.rows("SELECT outcome, count(*) FROM tenure.attempt GROUP BY 1"):
        report.note(f"running periods {outcome}", count)
