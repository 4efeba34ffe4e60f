"""What corruptions are made of: looking at a history, and changing it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from proof.checker.events import Event, JobHistory


def final_of(history: JobHistory, **changes: object) -> JobHistory:
    return replace(history, final=replace(history.final, **changes))  # type: ignore[arg-type]  # named by their field


def with_events(history: JobHistory, *more: Event) -> JobHistory:
    return replace(history, events=(*history.events, *more))


def without(history: JobHistory, drop: Callable[[Event], bool]) -> JobHistory:
    return replace(history, events=tuple(e for e in history.events if not drop(e)))


def swapped(history: JobHistory, old: Event, new: Event) -> JobHistory:
    return replace(history, events=tuple(new if e is old else e for e in history.events))


def attempt(history: JobHistory, number: int, token: int, outcome: str) -> JobHistory:
    """With one attempt changed."""
    attempts = list(history.final.attempts)
    attempts[number] = (token, outcome)
    return final_of(history, attempts=tuple(attempts))


def completer(history: JobHistory) -> int | None:
    """The token that completed it."""
    final = history.final
    return final.attempts[-1][0] if final.state == "completed" else None


def of(history: JobHistory, what: str, token: int) -> list[Event]:
    return [e for e in history.events if e.what == what and e.token == token]


def offers(history: JobHistory, token: int) -> list[Event]:
    """What may have completed it in this token's name."""
    commits = [e for e in of(history, "commit", token) if e.answer != "refused"]
    return [*commits, *of(history, "returned", token)]


def causes(history: JobHistory, token: int) -> list[Event]:
    """What may have made this token's period fail."""
    commits = [e for e in of(history, "commit", token) if e.answer != "ok"]
    returned = of(history, "returned", token) if history.unstorable else []
    return [*commits, *returned, *of(history, "raised", token)]


def end(history: JobHistory) -> float:
    """After everything that was seen."""
    times = [t for e in history.events for t in (e.since, e.until) if t < math.inf]
    return max(times) + 1.0


def requested_at(history: JobHistory) -> float:
    return min(e.since for e in history.events if e.what == "enqueue")


def acknowledged(history: JobHistory) -> float:
    known = (e.until for e in history.events if e.what == "enqueue" and e.answer == "ok")
    return min(known, default=math.inf)


def one_timeline(history: JobHistory) -> bool:
    """After a failover, reads of what went before prove nothing."""
    tokens = {token for token, _ in history.final.attempts} | {history.final.token}
    return len({token >> 40 for token in tokens}) == 1
