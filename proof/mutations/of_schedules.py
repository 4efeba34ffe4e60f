"""Bugs of schedules: a tick makes exactly one job, or one recorded miss."""

from __future__ import annotations

from proof.mutations import runs
from proof.mutations.bug import Bug, Edit

_LOCKS = "FOR NO KEY UPDATE SKIP LOCKED"

OF_SCHEDULES = (
    Bug(
        "tick-fires-again",
        "I7: a tick that is recorded makes nothing more",
        runs.RECORDED,
        "I7",
        (Edit("fire", "WHERE $8::boolean AND t.job_id IS NULL", "WHERE $8::boolean IS NOT NULL"),),
        caught_by="tests/conformance/test_firing.py",
    ),
    Bug(
        "due-without-lock",
        "R26: a firing locks what it fires, and another one skips it",
        runs.FIRING,
        "I7",
        (Edit("lock_due_schedules", _LOCKS, ""),),
        caught_by="tests/races/test_firing.py",
    ),
    Bug(
        "due-waits",
        "R27: a schedule that another one is at is skipped, not waited for",
        runs.FIRING,
        "I7",
        (Edit("lock_due_schedules", _LOCKS, "FOR NO KEY UPDATE"),),
        caught_by="tests/races/test_firing.py",
    ),
    Bug(
        "tick-without-job",
        "R26: a tick and its job are one transaction, and one statement",
        runs.OUTAGE,
        "I7",
        (Edit("fire", "WHERE a.made", "WHERE a.made AND a.reason IS NULL"),),
        caught_by="tests/races/test_schedulers_killed.py",
    ),
)
