"""What a run of the bed is held to beside the checker: counts, acknowledgements, excused losses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from proof.checker.check import check
from proof.checker.endings import ending_kind
from proof.checker.events import Event, Final, JobHistory, Violation
from proof.faults import suite
from proof.faults.grants import Loss, uncounted
from proof.faults.history import ANSWERED, REQUESTED, Enqueues, Pen
from proof.faults.jobs import LEASE
from proof.faults.run import Plan
from proof.faults.verdict import Counts, Verdict, counts, excuses
from proof.report import Report

if TYPE_CHECKING:
    from pathlib import Path

EXPIRED = Final("queued", 2, ((1, "expired"),), None, ())


def answered(pen: Pen, label: int, *ids: int) -> None:
    pen.write(REQUESTED, "1.0", "-", len(ids), "-", label)
    pen.write(ANSWERED, "1.0", "2.0", len(ids), ",".join(map(str, ids)), label)


def test_label_acknowledged_as_two_jobs_is_reported(tmp_path: Path) -> None:
    pen = Pen(str(tmp_path / "history"))
    answered(pen, 1, 11, 12)
    answered(pen, 1, 11, 13)
    found = Enqueues(tmp_path / "history")
    assert found.acknowledged == {1: 11, 2: 12}
    assert found.contradicted == [(2, 13)]


def ended(*outcomes: str, state: str = "queued") -> Final:
    return Final(state, 99, tuple(enumerate(outcomes, start=1)), None, ())


def test_each_kind_of_loss_raises_its_own_counter() -> None:
    assert not list(counts(ended("expired", "crashed"), Counts(0, 0, 2, 2)))
    assert not list(counts(ended("died"), Counts(0, 1, 0, 1)))
    assert not list(counts(ended("unbegun"), Counts(0, 0, 0, 1)))
    assert not list(counts(ended("excused", "released"), Counts(0, 0, 0, 0)))
    assert not list(counts(ended("stood_still"), Counts(0, 1, 0, 1)))
    assert not list(counts(ended("stood_still"), Counts(0, 0, 1, 1)))
    assert not list(counts(ended("failed", "died", state="failed"), Counts(2, 1, 0, 1)))


def test_wrong_counters_are_reported() -> None:
    for outcome, wrong in (
        ("expired", Counts(1, 0, 1, 1)),
        ("expired", Counts(0, 1, 0, 1)),
        ("expired", Counts(0, 0, 0, 1)),
        ("expired", Counts(0, 0, 1, 0)),
        ("died", Counts(0, 0, 1, 1)),
        ("unbegun", Counts(0, 0, 1, 1)),
        ("stood_still", Counts(0, 0, 0, 1)),
        ("stood_still", Counts(0, 1, 1, 1)),
        ("excused", Counts(0, 0, 1, 1)),
        ("released", Counts(1, 0, 0, 0)),
    ):
        assert list(counts(ended(outcome), wrong)), (outcome, wrong)
    # The archive keeps only the losses.
    assert list(counts(ended("died", "completed", state="completed"), Counts(1, 0)))


def test_a_loss_is_known_by_its_error() -> None:
    expired = "the lease expired and its worker did not give it back"
    began = "and the handler is not known to have begun"
    assert ending_kind("lost", "LeaseExpired", f"{expired} (lease expired at 1)") == "expired"
    assert ending_kind("lost", "LeaseExpired", f"{expired}, {began} (…)") == "unbegun"
    restarted = "the database was restarted or failed over while the job ran (…)"
    assert ending_kind("released", "Outage", restarted) == "excused"
    assert ending_kind("released", "Outage", "its lease could not be renewed") == "released"
    assert ending_kind("lost", "ProcessDied", "its own process died: SIGKILL") == "died"
    assert ending_kind("lost", "ProcessDied", "its worker process died: SIGKILL") == "crashed"
    after = "its own process died: SIGKILL, right after another job"
    assert ending_kind("lost", "ProcessDied", after) == "crashed"
    assert (
        ending_kind("lost", "StoodStill", "its worker process stopped responding") == "stood_still"
    )
    assert ending_kind("failed", "ValueError", None) == "failed"
    with pytest.raises(ValueError, match="no such loss"):
        ending_kind("lost", "ProcessDied", "somehow")


def test_only_a_start_of_the_server_excuses_a_loss_and_it_must() -> None:
    assert not list(excuses(EXPIRED, set()))
    assert list(excuses(EXPIRED, {1}))
    assert not list(excuses(ended("excused"), {1}))
    assert list(excuses(ended("excused"), set()))
    assert list(excuses(ended("unbegun"), {1}))


def test_a_loss_is_excused_by_a_start_between_the_last_grant_and_the_rescue() -> None:
    losses = [Loss(1, 5, 100.0, 110.0), Loss(2, 5, 100.0, 110.0)]
    renewed = [(1, 5, 100.0 + LEASE, 104.0 + LEASE), (1, 5, 101.0 + LEASE, 103.0 + LEASE)]
    assert uncounted(losses, renewed, {99.0, 111.0}) == {}
    assert uncounted(losses, renewed, {102.0}) == {2: {5}}
    assert uncounted(losses, renewed, {105.0}) == {1: {5}, 2: {5}}


def test_a_loss_that_is_the_last_one_allowed_ends_the_job() -> None:
    events = (Event("enqueue", 0.0, 1.0, answer="ok"), Event("began", 2.0, 2.0, 1))
    for outcome, invariants in (("died", []), ("stood_still", []), ("crashed", ["I9"])):
        history = JobHistory(1, events, ended(outcome, state="failed"), 60, 1)
        assert [one.invariant for one in check(history)] == invariants


def test_ten_worker_losses_end_the_job_and_nine_do_not() -> None:
    events = (Event("enqueue", 0.0, 1.0, answer="ok"), Event("began", 2.0, 2.0, 1))
    for lost, invariants in ((9, ["I9"]), (10, [])):
        history = JobHistory(1, events, ended(*["crashed"] * lost, state="failed"))
        assert [one.invariant for one in check(history)] == invariants


def test_unchecked_leases_are_not_reported_as_sound() -> None:
    course: Any = SimpleNamespace(unmet=[], stuck=0)
    plan = Plan(seed=1, jobs=0, rate=1.0)

    def reports(found: Verdict) -> list[str]:
        report = Report({}, versions={})
        suite._tell(report, found, course, plan, None)
        return [key for key in report.figures if ": I3: " in key]

    assert reports(Verdict()) == []
    assert reports(Verdict(violations=[Violation("I3", 1, "two at once")]))
