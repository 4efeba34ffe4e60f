"""The append-only history of a run: what each client and each handler saw, outside the database.

One line is one thing: `what since until token answer subject…`. Times are the machine's
monotonic clock, which no libfaketime of ours touches.
"""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from proof.checker.events import Event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REQUESTED, ANSWERED, UNKNOWN = "asked", "answered", "unknown"
# Written before the answer can come: a process that dies in between leaves it open.
OPENED, CANCELLING = "opened", "cancelling"
# By a client that asked for something again and again.
GAVE_UP = "gave-up"
# A handler that is a fault in itself says so.
HARM = "harm"
_BEGINNINGS = {OPENED: "commit", CANCELLING: "cancel"}


def now() -> float:
    """Seconds of the clock that everyone on this machine shares."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Pen:
    """Writes lines; each is one `write` to a file opened for appending, so none is torn."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, *words: object) -> None:
        """Say one thing."""
        os.write(self._fd, (" ".join(map(str, words)) + "\n").encode())

    def instant(self, what: str, job_id: int, token: int) -> None:
        """Something that a handler does at this moment."""
        self.write(what, f"{now():.6f}", "-", token, "-", job_id)

    def span(self, what: str, since: float, job_id: int, token: int, answer: str) -> None:
        """Something that was begun then, and is answered now."""
        self.write(what, f"{since:.6f}", f"{now():.6f}", token, answer, job_id)


# What a handler says at its end is settled later, where it does not see it.
_UNSEEN = {"returned", "raised"}


def events(path: Path) -> dict[int, list[Event]]:
    """What handlers and clients said of each job, by its id; enqueues are `enqueues`."""
    found: dict[int, list[Event]] = defaultdict(list)
    begun: dict[tuple[str, int, int], float] = {}
    for what, since, until, token, answer, job_id in _lines(path):
        if what in {REQUESTED, ANSWERED, UNKNOWN, GAVE_UP, HARM}:
            continue
        at = float(since)
        if what in _BEGINNINGS:
            begun[_BEGINNINGS[what], int(job_id), int(token)] = at
            continue
        begun.pop((what, int(job_id), int(token)), None)
        end = math.inf if what in _UNSEEN else at if until == "-" else float(until)
        if answer == UNKNOWN:
            end = math.inf
        found[int(job_id)].append(Event(what, at, end, int(token), "" if answer == "-" else answer))
    for (what, job, period), at in begun.items():
        found[job].append(Event(what, at, math.inf, period, UNKNOWN))
    return found


def harms(path: Path) -> Iterator[tuple[str, float]]:
    """What handlers did to their processes, and when."""
    for what, since, *_, kind in _lines(path):
        if what == HARM:
            yield f"handler: {kind.replace('_', ' ')}", float(since)


def given_up(path: Path) -> Iterator[str]:
    """What clients no longer asked for, although they had no answer."""
    for what, since, until, count, _, first in _lines(path):
        if what == GAVE_UP:
            yield f"{count} jobs from label {first} on, after {float(until) - float(since):.0f} s"


class Enqueues:
    """What clients know of the jobs they asked for, by label: a number that each job carries."""

    def __init__(self, path: Path) -> None:
        self.acknowledged: dict[int, int] = {}
        # (label, id) of an answer that names another job than an earlier one of the label did.
        self.contradicted: list[tuple[int, int]] = []
        self.requested: dict[int, list[Event]] = defaultdict(list)
        # A label of which no answer was read, because its client was killed, stays open.
        pending: dict[int, float] = {}
        for what, since, until, count, answer, subject in _lines(path):
            if what not in {REQUESTED, ANSWERED, UNKNOWN}:
                continue
            first = int(subject)
            labels = range(first, first + int(count))
            at = float(since)
            if what == REQUESTED:
                for label in labels:
                    self._left_open(pending, label)
                    pending[label] = at
                continue
            ids = answer.split(",") if what == ANSWERED else ()
            for position, label in enumerate(labels):
                pending.pop(label, None)
                if ids:
                    job_id = int(ids[position])
                    if self.acknowledged.setdefault(label, job_id) != job_id:
                        self.contradicted.append((label, job_id))
                    self.requested[label].append(Event("enqueue", at, float(until), answer="ok"))
                else:
                    self.requested[label].append(Event("enqueue", at, math.inf, answer=UNKNOWN))
        for label in list(pending):
            self._left_open(pending, label)

    def _left_open(self, pending: dict[int, float], label: int) -> None:
        if label in pending:
            since = pending.pop(label)
            self.requested[label].append(Event("enqueue", since, math.inf, answer=UNKNOWN))


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open() as file:
        for line in file:
            yield line.split()
