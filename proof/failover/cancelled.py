"""Commits that wait for a synchronous standby, cancelled by the server or by the client's deadline,
asked again with the same key; then the primary is lost with what only it had."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg

from proof.failover import accounts
from proof.failover.harness import Bed
from support.pair import Pair

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from proof.report import Report

CANCEL = "cancelled commit wait"
CUT = "standby cut off"
LOSE = "primary lost with writes that its standby has not"
# What a client is told of a wait that was cancelled; counted is what clients saw.
_REFUSAL = "unknown: OutcomeUnknown enqueue_keyed: written, but not confirmed"
_PAST_DEADLINE = "unknown: TimeoutError"
_CLIENTS, _LANES, _DEADLINE = 2, 8, 1.5
# Enqueues notify, and of commits that do only one at a time can wait for the standby.
_SWEEPS, _SWEEP_EVERY = (8, 24), 0.04
_WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name LIKE 'tenure%'
"""
_MOST_ROUNDS = 100


def run(directory: Path, report: Report, rng: Random, waits: int, bug: str | None) -> None:
    """Fail over until this many waits were cancelled; no worker runs meanwhile, so that what was
    acknowledged stays where it was put."""
    false: set[str] = set()
    erased = rounds = 0
    with Pair(synchronous=True) as pair, Bed(pair.url(), directory, bug) as bed:
        for number in range(_CLIENTS):
            bed.call(f"c{number}", lanes=_LANES, deadline=_DEADLINE)
        while bed.book().count_answers(_REFUSAL) < waits and rounds < _MOST_ROUNDS and not false:
            rounds += 1
            if rng.random() < 0.5:
                # Some waits are cancelled, and the standby comes back before anything is lost.
                _cancel(pair, bed, report, rng)
                pair.restore()
            _cancel(pair, bed, report, rng)
            if rounds % 2:
                # A client that waits now is not cancelled and leaves at its own deadline.
                time.sleep(2 * _DEADLINE)
            before = _there(pair, bed)
            pair.fail_over()
            report.fault(LOSE)
            erased += len(before - _there(pair, bed))
            false.update(_false(bed))
            pair.build()
        codes = bed.hush()
        false.update(_false(bed))
        book = bed.book()
        report.at_least(
            "cancelled commit waits, as clients saw them", book.count_answers(_REFUSAL), waits
        )
        report.at_least(
            "waits ended by the client's deadline", book.count_answers(_PAST_DEADLINE), 1
        )
        report.at_least("failovers", rounds, 1)
        report.at_least("jobs erased by them before anybody was told", erased, 1)
        report.jobs += len(book.current)
        report.note("keys acknowledged", len(book.current))
        report.none("false acknowledgements", false)
        report.none("clients that gave up", [code for code in codes if code])
        accounts.tell_keys(report, book, bed.rows(accounts.JOBS))


def _cancel(pair: Pair, bed: Bed, report: Report, rng: Random) -> None:
    """Wait until every lane is served, then cut the standby off and cancel who waits for it,
    again and again, as each asks again."""
    bed.served(_CLIENTS * _LANES)
    pair.cut()
    cut_at = time.monotonic()
    with psycopg.connect(pair.primary.url("proof"), autocommit=True, connect_timeout=3) as operator:
        for _ in range(rng.randint(*_SWEEPS)):
            time.sleep(_SWEEP_EVERY)
            for (pid,) in operator.execute(_WAITING).fetchall():
                # A few are left to their own deadline.
                if rng.random() < 0.85:
                    operator.execute("SELECT pg_cancel_backend(%s)", [pid])
                    report.fault(CANCEL)
    report.fault(CUT, time.monotonic() - cut_at)


def _there(pair: Pair, bed: Bed) -> set[tuple[str, int]]:
    """The jobs that the primary has, by key and id, as others see them."""
    return {(key, i) for key, i, _ in bed.rows(accounts.JOBS, url=pair.primary.url("proof"))}


def _false(bed: Bed) -> list[str]:
    """What is acknowledged and not there. The book is read first: what is acknowledged later may
    be missing in it, and is looked for the next time."""
    book = bed.book()
    return accounts.lost(bed, book)
