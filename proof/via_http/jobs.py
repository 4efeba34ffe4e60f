"""Handlers of workers over HTTP. Their effects are what the protocol keeps: a report with one item,
named by the fence, and the result, which is the fence. They say in the history how far they are."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from proof.crash.history import REFUSED, Pen
from proof.crash.jobs import OFTEN, PRIORITY, PRIORITY_OF_BACKLOG, QUEUE, first
from tenure._model.job import NewJob
from tenure.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tenure.client import Handler, Work

# `reporting` is before the report is sent, `reported` after it was answered.
PHASES = ("begun", "reporting", "reported")


@cache
def _pen() -> Pen:
    return Pen(os.environ["PROOF_HISTORY"])


def _say(phase: str, job: Work) -> None:
    _pen().write(phase, int(job.id), int(job.fence))


@contextmanager
def _refusals(job: Work) -> Iterator[None]:
    try:
        yield
    except LeaseLost:
        _say(REFUSED, job)
        raise


def report(job: Work) -> int:
    """Report one item, and answer."""
    _say("begun", job)
    job.stop.wait(job.args["before"])
    _say("reporting", job)
    with _refusals(job):
        job.progress(items={job.fence: os.getpid()}, done=1)
    _say("reported", job)
    _deaf(job.args["within"])
    return int(job.fence)


def answer(job: Work) -> int:
    """Answer, deaf to whatever it is told."""
    _say("begun", job)
    _deaf(job.args["seconds"])
    return int(job.fence)


def linger(job: Work) -> int:
    """Answer after a long time; one of three responds to the loss of its lease. The next holder is
    mostly brief; a third is still at it when the first holder wakes up."""
    _say("begun", job)
    seconds = job.args["seconds"]
    number = int(job.id) % 3
    if not first(int(job.fence)):
        seconds = seconds / 2 if number == 0 else 0.0
    if number == 1:
        job.stop.wait(seconds)
    else:
        _deaf(seconds)
    return int(job.fence)


def _deaf(seconds: float) -> None:
    threading.Event().wait(seconds)


HANDLERS: dict[str, Handler] = {"report": report, "answer": answer, "linger": linger}


def killed(rng: Random) -> NewJob:
    """One job for workers that are killed."""
    return _job("report", before=rng.uniform(0.02, 0.5), within=rng.uniform(0, 0.15))


def stopped(rng: Random) -> NewJob:
    """One job for workers that are stopped."""
    if rng.random() < 0.2:
        return _job("answer", seconds=rng.uniform(0.3, 1.2))
    return _job("report", before=rng.uniform(0.1, 0.6), within=rng.uniform(0.3, 1.0))


def waiting(rng: Random) -> NewJob:
    """One of a backlog."""
    return _job("answer", priority=PRIORITY_OF_BACKLOG, seconds=rng.uniform(0.1, 0.4))


def lingering(rng: Random) -> NewJob:
    """One job for workers that sleep past their leases."""
    return _job("linger", seconds=rng.uniform(3.5, 9))


def _job(task: str, *, priority: int = PRIORITY, **args: Any) -> NewJob:
    return NewJob(task, QUEUE, args, priority=priority, max_attempts=OFTEN, max_losses=OFTEN)
