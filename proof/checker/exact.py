"""What needs no search: a history that breaks one of these is wrong in every order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from proof.checker.lifecycle import (
    ENDED,
    FAILURES,
    FOR_GOOD,
    FORCED,
    LOST,
    OUTCOMES,
    STATES,
    capped,
    leads_to,
)
from proof.checker.order import erased

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proof.checker.events import JobHistory
    from proof.checker.reports import Reports

# The invariant and the sentence.
Fault = tuple[str, str]


def faults(history: JobHistory, reports: Reports) -> Iterator[Fault]:
    """Every one of them that is found."""
    final = history.final
    if final.state == "gone":
        yield from _gone(history, reports)
        return
    if final.state not in STATES:
        raise ValueError(f"job {history.job_id}: no such state: {final.state}")
    if unknown := {outcome for _, outcome in final.attempts} - OUTCOMES:
        raise ValueError(f"job {history.job_id}: no such outcome: {', '.join(unknown)}")
    yield from _tokens(history, reports)
    yield from _results(history, reports)
    yield from _entries(history)
    if final.state not in ENDED:
        yield "I6", f"it is still {final.state} at the end, token {final.token}"
    else:
        yield from _ends(history, reports)


def _gone(history: JobHistory, reports: Reports) -> Iterator[Fault]:
    if reports.acknowledged < math.inf:
        yield "I1", "its enqueue was acknowledged, and it is gone"
    for token in reports.committed:
        yield "I2", f"token {token} was told that its commit holds, and the job is gone"
    for event in reports.ended:
        yield "I1", f"a client was told at {event.until} that it is cancelled, and it is gone"
    if history.final.entries:
        yield "I4", f"it is gone, and the ledger has entries of {_list(history.final.entries)}"


def _tokens(history: JobHistory, reports: Reports) -> Iterator[Fault]:
    final = history.final
    before, least = 0, 1
    for token, outcome in final.attempts:
        if token < least:
            yield "I8", f"a period has token {token} after {before}; it had to be {least} or more"
        before, least = token, token + 2 if outcome in FORCED else token + 1
    if final.token < least - 1:
        yield "I8", f"the job's token is {final.token}, and its last period had {before}"
    for token in reports.begun_twice:
        yield "I8", f"two handlers began under token {token}"
    known = {token for token, _ in final.attempts}
    if final.state == "running":
        known.add(final.token)
    for token in reports.first.keys() - known:
        if not erased(history, token):
            yield "I8", f"a handler ran under token {token}, which no period has"


def _results(history: JobHistory, reports: Reports) -> Iterator[Fault]:
    final = history.final
    completed = [token for token, outcome in final.attempts if outcome == "completed"]
    if len(completed) > 1:
        yield "I2", f"it was completed by {_list(completed)}"
    if (final.state == "completed") != bool(completed):
        yield "I2", f"it is {final.state}, and completed by {_list(completed) or 'no period'}"
    elif completed and final.token != completed[-1]:
        yield "I2", f"it was completed by {completed[-1]}, and its last token is {final.token}"
    if final.result is not None and final.result not in completed[-1:]:
        yield "I2", f"the result is by {final.result}, the completion by {_list(completed)}"
    for token in completed:
        if token not in reports.offered:
            yield "I2", f"it was completed by {token}, whose handler offered nothing acceptable"
    for token in reports.committed.keys() - set(completed):
        yield "I2", f"token {token} was told that its commit holds, and it did not complete the job"
    for token in reports.committed_twice:
        yield "I2", f"token {token} was told twice that its commit holds"
    for token, outcome in final.attempts:
        if outcome == "failed" and token in reports.began and token not in reports.failing:
            yield "I2", f"the period of {token} failed, and its handler did not"


def _entries(history: JobHistory) -> Iterator[Fault]:
    final = history.final
    completed = [token for token, outcome in final.attempts if outcome == "completed"]
    wanted = tuple(completed[-1:]) if final.state == "completed" else ()
    if final.entries != wanted and (final.writes or final.entries):
        found = _list(final.entries) or "no worker"
        yield "I4", f"the ledger has entries by {found}, the completion is by {_list(wanted)}"


def _ends(history: JobHistory, reports: Reports) -> Iterator[Fault]:
    """Each period must lead to what follows it."""
    final = history.final
    caps = list(capped(history))
    for (token, outcome), at_cap in zip(final.attempts[:-1], caps, strict=False):
        if outcome in FOR_GOOD:
            yield "I2", f"token {token} ended the job ({outcome}), and it ran again"
        elif "queued" not in leads_to(outcome, cancel_requested=False, at_cap=at_cap):
            yield "I9", f"with token {token} ({outcome}) it was at a cap, and it ran again"
    if len(reports.ended) > 1:
        yield "I2", f"{len(reports.ended)} clients were told that they cancelled it in the queue"
    if reports.ended and final.state != "cancelled":
        yield "I2", f"a client was told that it is cancelled, and it is {final.state}"
    if reports.requested and final.state == "failed":
        yield "I2", "its cancel was requested while it ran, and it is failed"
    if final.state == "completed":
        return
    token, outcome = final.attempts[-1] if final.attempts else (0, "")
    reached = leads_to(outcome, cancel_requested=False, at_cap=caps[-1]) if final.attempts else ()
    if final.state == "failed" and "failed" not in reached:
        yield "I9", f"it failed below its caps, after token {token} ({outcome or 'never claimed'})"
    elif final.state == "failed" and not _explains(final.reason, outcome, at_cap=caps[-1]):
        yield "I9", f"it failed for {final.reason}, after token {token} ({outcome})"
    request = reports.ended or reports.requested or reports.maybe_cancelled < math.inf
    if final.state == "cancelled" and "cancelled" not in reached and not request:
        yield "I1", f"it is cancelled without a request, after token {token} ({outcome})"


def _explains(reason: str | None, outcome: str, *, at_cap: bool | None) -> bool:
    """Whether a job can have failed for this reason with a period that ended so."""
    match reason:
        case "attempts":
            return outcome in FAILURES and bool(at_cap)
        case "poison":
            return outcome in LOST
        case "lost":
            return outcome not in FAILURES
        case _:
            return reason is None or outcome in FAILURES


def _list(tokens: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, tokens))
