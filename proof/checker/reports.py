"""What the events of one job tell, taken together in one pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from proof.checker.lifecycle import STATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from proof.checker.events import Event

_COMMITS = frozenset({"ok", "refused", "unknown"})
_CANCELS = frozenset({"ended", "requested", "nothing", "unknown"})


class Reports:
    """When each thing was done at the earliest or the latest; tokens are the keys.

    An operation without an answer may take effect at any time after it began, or never. That a
    commit was refused says only that this commit had no effect: a worker that no longer trusts
    its lease refuses without asking, while the store still has it.
    """

    __slots__ = (
        "_unstorable",
        "acknowledged",
        "began",
        "begun_twice",
        "committed",
        "committed_twice",
        "ended",
        "enqueue_sent",
        "failing",
        "first",
        "maybe_cancelled",
        "offered",
        "reads",
        "requested",
    )  # fmt: skip

    def __init__(self, events: Iterable[Event], *, unstorable: bool = False) -> None:
        self._unstorable = unstorable
        self.enqueue_sent = math.inf  # the earliest enqueue
        self.acknowledged = math.inf  # the earliest answer to one
        self.first: dict[int, float] = {}  # the earliest sign of a handler
        self.began: set[int] = set()
        self.begun_twice: list[int] = []
        self.offered: dict[int, float] = {}  # the earliest offer of a completion
        self.failing: dict[int, float] = {}  # the earliest cause of a failure
        self.committed: dict[int, Event] = {}
        self.committed_twice: list[int] = []
        self.ended: list[Event] = []  # cancels that ended it
        self.requested = False
        self.maybe_cancelled = math.inf  # the earliest cancel whose answer is unknown
        self.reads: list[Event] = []  # what changes nothing: reads, and cancels of what had ended
        for event in events:
            if not event.since <= event.until:
                raise ValueError(f"{event} ends before it begins")
            match event.what:
                case "enqueue":
                    self._enqueue(event)
                case "cancel":
                    self._cancel(event)
                case "seen":
                    if event.answer not in STATES:
                        raise ValueError(f"{event}: no such state")
                    self.reads.append(event)
                case _:
                    self._handler(event)

    def _enqueue(self, event: Event) -> None:
        if event.answer not in {"ok", "unknown"}:
            raise ValueError(f"{event}: no such answer")
        self.enqueue_sent = min(self.enqueue_sent, event.since)
        if event.answer == "ok":
            self.acknowledged = min(self.acknowledged, event.until)

    def _cancel(self, event: Event) -> None:
        if event.answer not in _CANCELS:
            raise ValueError(f"{event}: no such answer")
        if event.answer == "unknown":
            self.maybe_cancelled = min(self.maybe_cancelled, event.since)
        elif event.answer == "ended":
            self.ended.append(event)
        else:
            self.requested |= event.answer == "requested"
            self.reads.append(event)

    def _handler(self, event: Event) -> None:
        token, since = event.token, event.since
        _earlier(self.first, token, since)
        match event.what:
            case "began":
                if token in self.began:
                    self.begun_twice.append(token)
                self.began.add(token)
            case "returned":
                _earlier(self.offered, token, since)
                if self._unstorable:
                    _earlier(self.failing, token, since)
            case "raised":
                _earlier(self.failing, token, since)
            case "commit":
                self._commit(event)
            case "effect":
                pass
            case _:
                raise ValueError(f"{event}: no such event")

    def _commit(self, event: Event) -> None:
        if event.answer not in _COMMITS:
            raise ValueError(f"{event}: no such answer")
        if event.answer == "ok":
            if event.token in self.committed:
                self.committed_twice.append(event.token)
            self.committed[event.token] = event
        else:
            _earlier(self.failing, event.token, event.since)
        if event.answer != "refused":
            _earlier(self.offered, event.token, event.since)


def _earlier(times: dict[int, float], token: int, since: float) -> None:
    if since < times.get(token, math.inf):
        times[token] = since
