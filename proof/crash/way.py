"""The ways by which workers come by their leases: which jobs they are given, how far their handlers
say they are, and which accounts are closed in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.crash import accounts, jobs
from proof.crash.history import PHASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from proof.crash.harness import Bed, Maker
    from proof.report import Report
    from tenure._model.job import NewJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way. Stops aim at `stop_at`, of which the first is what is open for long."""

    killed: Maker
    stopped: Maker
    waiting: Maker
    phases: Sequence[str]
    stop_at: Sequence[str]
    settle: Callable[[Bed, Report], None]


def _killed(rng: Random) -> NewJob:
    """One job that writes the ledger, in a thread or on the loop."""
    task = rng.choice((jobs.enter, jobs.aenter))
    return task.bind(rng.uniform(0.02, 0.5), rng.uniform(0, 0.15)).job


def _stopped(rng: Random) -> NewJob:
    """One job: mostly with an effect, in a transaction that stays open for a while."""
    if rng.random() < 0.2:
        return jobs.answer.bind(rng.uniform(0.3, 1.2)).job
    task = rng.choice((jobs.enter, jobs.aenter))
    return task.bind(rng.uniform(0.1, 0.6), rng.uniform(0.3, 1.0)).job


def _waiting(rng: Random) -> NewJob:
    """One of a backlog."""
    return jobs.wait.bind(rng.uniform(0.1, 0.4)).job


# By the database: the workers of the package.
DIRECT = Way(
    killed=_killed,
    stopped=_stopped,
    waiting=_waiting,
    phases=PHASES,
    stop_at=("written", "begun", "left"),
    settle=accounts.settle,
)
