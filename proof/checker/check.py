"""The verdict on one job, and on many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from proof.checker import exact, order
from proof.checker.events import Violation
from proof.checker.lifecycle import Step, courses
from proof.checker.reports import Reports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proof.checker.events import Event, JobHistory
    from proof.checker.lifecycle import Course

_OFFERS = frozenset({"returned", "commit"})


def check_all(histories: Iterable[JobHistory]) -> Iterator[Violation]:
    """What is wrong with any of them."""
    for history in histories:
        if not _plain(history):
            yield from check(history)


def check(history: JobHistory) -> list[Violation]:
    """What is wrong with it; nothing if the life cycle and real time allow every answer."""
    if _plain(history):
        return []
    reported = Reports(history.events, unstorable=history.unstorable)
    found = list(exact.faults(history, reported))
    if not found and history.final.state != "gone":
        found = _unordered(history, reported)
    return [Violation(invariant, history.job_id, what) for invariant, what in found]


def _unordered(history: JobHistory, reports: Reports) -> list[exact.Fault]:
    stuck = None
    for course in courses(history):
        if _caused(course, reports):
            stuck = order.find(history, reports, course)
            if stuck is None:
                return []
    if stuck is None:
        return [("I2", f"no cancel that was made leads to {history.final.state}")]
    return [_sentence(stuck)]


def _caused(course: Course, reports: Reports) -> bool:
    """Whether there was a cancel where the course needs one, and none that it cannot have."""
    if course.steps[-1].name == "cancel":
        return bool(reports.ended) or reports.maybe_cancelled < math.inf
    if reports.ended:
        return False
    return not course.by_request or reports.requested or reports.maybe_cancelled < math.inf


def _sentence(stuck: order.Stuck) -> exact.Fault:
    step, before, place = stuck
    if step is not None and step.name == "create":
        return "I1", f"{_say(before)}, before anybody had asked for the job"
    if isinstance(before, Step):
        made = "had ended" if before.name == "end" else "had begun"
        late = "" if step is None else f" before the {step.name} of {step.token} was possible"
        return "I3", f"token {before.token} {made}{late}"
    where = f"{place.state} under token {place.low}" if place.low else place.state
    if before.token and not place.low <= before.token <= place.high:
        return "I8", f"{_say(before)}, where it can only have been {where}"
    return "I2", f"{_say(before)}, where it can only have been {where}"


def _say(what: Step | Event) -> str:
    if isinstance(what, Step):
        return f"token {what.token} had begun" if what.token else "it was acknowledged"
    if what.what == "seen":
        return f"it was seen {what.answer} with token {what.token} until {what.until:.6f}"
    return f"a cancel was answered with {what.answer} at {what.until:.6f}"


def _plain(history: JobHistory) -> bool:
    """Whether it is the history that nearly every job has, and sound: acknowledged, begun once,
    completed by its only period."""
    final = history.final
    if final.state != "completed" or len(final.attempts) != 1 or history.max_attempts < 1:
        return False
    token, outcome = final.attempts[0]
    if outcome != "completed" or final.token != token or token < 1:
        return False
    if final.result is not None and final.result != token:
        return False
    if final.entries != ((token,) if final.writes else ()) or not history.events:
        return False
    first, *rest = history.events
    if first.what != "enqueue" or first.answer != "ok" or not first.since <= first.until:
        return False
    return _runs_once(rest, token, first.since)


def _runs_once(events: list[Event], token: int, requested_at: float) -> bool:
    began = offered = False
    for event in events:
        if event.token != token or event.since < requested_at or event.until < event.since:
            return False
        what = event.what
        if what == "began":
            if began:
                return False
            began = True
        elif what in _OFFERS:
            # A transaction and then a result: left to the search.
            if offered or (what == "commit" and event.answer != "ok"):
                return False
            offered = True
        elif what != "effect":
            return False
    return offered
