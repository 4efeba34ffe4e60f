"""What a run of the bed is held to beside the checker: counts, acknowledgements, excused losses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from proof.checker.check import check
from proof.checker.events import Event, Final, JobHistory, Violation
from proof.faults import suite
from proof.faults.grants import Loss, uncounted
from proof.faults.history import ANSWERED, ASKED, Enqueues, Pen
from proof.faults.jobs import LEASE
from proof.faults.run import Plan
from proof.faults.verdict import Verdict, counts
from proof.report import Report

if TYPE_CHECKING:
    from pathlib import Path

NONE: frozenset[int] = frozenset()
LOST = Final("failed", 2, ((1, "lost"),), None, ())


def answered(pen: Pen, label: int, *ids: int) -> None:
    pen.write(ASKED, "1.0", "-", len(ids), "-", label)
    pen.write(ANSWERED, "1.0", "2.0", len(ids), ",".join(map(str, ids)), label)


def test_a_label_that_is_acknowledged_as_two_jobs_is_told(tmp_path: Path) -> None:
    pen = Pen(str(tmp_path / "history"))
    answered(pen, 1, 11, 12)
    answered(pen, 1, 11, 13)
    found = Enqueues(tmp_path / "history")
    assert found.acknowledged == {1: 11, 2: 12}
    assert found.contradicted == [(2, 13)]


def test_losses_are_counted_as_they_were_but_for_starts_of_the_server() -> None:
    assert not list(counts(LOST, 1, 1, NONE))
    assert not list(counts(LOST, 1, 0, frozenset({1})))
    assert list(counts(LOST, 1, 0, NONE))
    assert list(counts(LOST, 1, 1, frozenset({1})))


def test_a_loss_is_excused_by_a_start_between_the_last_grant_and_the_rescue() -> None:
    losses = [Loss(1, 5, 100.0, 110.0), Loss(2, 5, 100.0, 110.0)]
    renewed = [(1, 5, 100.0 + LEASE, 104.0 + LEASE), (1, 5, 101.0 + LEASE, 103.0 + LEASE)]
    assert uncounted(losses, renewed, {99.0, 111.0}) == {}
    assert uncounted(losses, renewed, {102.0}) == {2: {5}}
    assert uncounted(losses, renewed, {105.0}) == {1: {5}, 2: {5}}


def test_a_first_loss_that_is_the_last_one_allowed_ends_the_job() -> None:
    events = (Event("enqueue", 0.0, 1.0, answer="ok"), Event("began", 2.0, 2.0, 1))
    assert not check(JobHistory(1, events, LOST, 60, 1))
    [excused] = check(JobHistory(1, events, LOST, 60, 1, frozenset({1})))
    assert excused.invariant == "I9"


def test_leases_that_nobody_looked_at_are_not_told_as_sound() -> None:
    course: Any = SimpleNamespace(unmet=[], stuck=0)
    plan = Plan(seed=1, jobs=0, rate=1.0)

    def told(found: Verdict) -> list[str]:
        report = Report({}, versions={})
        suite._tell(report, found, course, plan, None)
        return [key for key in report.figures if ": I3: " in key]

    assert told(Verdict()) == []
    assert told(Verdict(violations=[Violation("I3", 1, "two at once")]))
