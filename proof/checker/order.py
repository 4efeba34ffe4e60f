"""Is there an order of steps and reads that real time allows, in which each read is right?

A search as Wing and Gong's for linearizability, over a chain: the steps' order is known, and a
read changes nothing. So a read that may come next and is right here is taken at once, which
takes nothing from any other order; when none is left the chain goes one step further. No choice
is ever taken back, and yet every order is covered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from proof.checker.lifecycle import ENDED

if TYPE_CHECKING:
    from proof.checker.events import Event, JobHistory
    from proof.checker.lifecycle import Course, Place, Step
    from proof.checker.reports import Reports

# Tokens start again, above all earlier ones, with each timeline of the server.
_TIMELINE = 40


class Bounds(NamedTuple):
    """Between which times a step was made."""

    low: float
    high: float


class Stuck(NamedTuple):
    """Where every order ends: what cannot come next because something else must come before."""

    step: Step | None  # None: all steps are made, and the read has no place
    before: Step | Event
    at: Place


def erased(history: JobHistory, token: int) -> bool:
    """Whether a failover may have erased the period of this token: a later timeline has begun."""
    return token >> _TIMELINE < history.final.token >> _TIMELINE


def find(history: JobHistory, reports: Reports, course: Course) -> Stuck | None:
    """None if there is an order, or where the search ended."""
    bounds = [_bounds(step, reports) for step in course.steps]
    if course.by_request and not reports.requested:
        last = bounds[-1]
        bounds[-1] = Bounds(max(last.low, reports.maybe_cancelled), last.high)
    reads = reports.reads
    if any(erased(history, token) for token, _ in history.final.attempts) or any(
        erased(history, token) for token in reports.first
    ):
        # What was seen before a failover may be gone without having been acknowledged.
        reads = [read for read in reads if read.answer == "requested"]
    return _search(course, bounds, sorted(reads, key=_until))


def _until(event: Event) -> float:
    return event.until


def _bounds(step: Step, reports: Reports) -> Bounds:
    token = step.token
    if step.name == "claim":
        return Bounds(-math.inf, reports.first.get(token, math.inf))
    if step.name == "create":
        return Bounds(
            -math.inf if reports.enqueue_sent == math.inf else reports.enqueue_sent,
            reports.acknowledged,
        )
    if step.name == "cancel":
        if reports.ended:
            return Bounds(reports.ended[0].since, reports.ended[0].until)
        return Bounds(reports.maybe_cancelled, math.inf)
    if step.outcome == "completed":
        if commit := reports.committed.get(token):
            return Bounds(commit.since, commit.until)
        return Bounds(reports.offered[token], math.inf)
    if step.outcome == "failed":
        return Bounds(reports.failing.get(token, -math.inf), math.inf)
    return Bounds(-math.inf, math.inf)


def _search(course: Course, bounds: list[Bounds], reads: list[Event]) -> Stuck | None:
    """Reads are in the order of their ends, so that the first is the one that ends first."""
    for number, place in enumerate(course.places):
        latest, first = math.inf, None
        for step, bound in zip(course.steps[number:], bounds[number:], strict=True):
            if bound.high < latest:
                latest, first = bound.high, step
        while reads:
            horizon = min(latest, reads[0].until)
            left = [r for r in reads if r.since > horizon or not right(r, place)]
            if len(left) == len(reads):
                break
            reads = left
        if number == len(course.steps):
            return Stuck(None, reads[0], place) if reads else None
        low = bounds[number].low
        if first is not None and low > latest:
            return Stuck(course.steps[number], first, place)
        if reads and low > reads[0].until:
            return Stuck(course.steps[number], reads[0], place)
    return None


def right(read: Event, place: Place) -> bool:
    """Whether the answer is what the life cycle gives at this place."""
    if read.answer == "requested":
        return place.state == "running" and place.respects
    if read.answer == "nothing":
        return place.state in ENDED or place.state == "absent"
    return place.state == read.answer and (not read.token or place.low <= read.token <= place.high)
