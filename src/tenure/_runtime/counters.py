"""A child's counters, in shared memory that its parent can read even after the child was killed."""

import json
import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from tenure._model.lease import RescuedLease, SettleResult, SettleStatus
from tenure._model.outcome import Loss, SettleRequest
from tenure._runtime.events import RuntimeEvents
from tenure._runtime.held_leases import HeldLease
from tenure._services.base import Service

# The child writes to the inactive half, then activates it with one byte. A reader therefore always
# finds a complete copy, even if the child was killed while writing.
_HALF = 512 * 1024
_SIZE = 8 + 2 * _HALF
_LENGTH = struct.Struct("=I")


class SharedCounters:
    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._last: dict[str, Any] = {}

    @staticmethod
    def make() -> int:
        fd = os.memfd_create("tenure-sheet")
        os.ftruncate(fd, _SIZE)
        return fd

    def write(self, counts: dict[str, Any]) -> None:
        """Replace the last counts; ignore counts that don't fit."""
        text = json.dumps(counts, ensure_ascii=False).encode(errors="replace")
        if len(text) > _HALF - _LENGTH.size:
            return
        half = 1 - self._memory[0]
        at = 8 + half * _HALF
        _LENGTH.pack_into(self._memory, at, len(text))
        self._memory[at + _LENGTH.size : at + _LENGTH.size + len(text)] = text
        self._memory[0] = half

    def read(self) -> dict[str, Any]:
        at = 8 + self._memory[0] * _HALF
        [length] = _LENGTH.unpack_from(self._memory, at)
        text = self._memory[at + _LENGTH.size : at + _LENGTH.size + min(length, _HALF)]
        # The copy is invalid only if two more were written during this read.
        with suppress(ValueError):
            self._last = json.loads(text) if length else self._last
        return self._last

    def close(self) -> None:
        self._memory.close()


_PAUSE = timedelta(seconds=1)
# The first 100 tasks are counted by name, the rest together.
_MOST_TASKS = 100
OTHERS = "(others)"


class WorkerCounters:
    """Count attempts on the thread that runs handlers, and rescues on the service thread too."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.lost = 0
        self.rescued: int = 0
        self._tasks: set[str] = set()

    def subscribe_to(self, events: RuntimeEvents) -> None:
        events.started.append(self.start)
        events.completed.append(self.complete)
        events.succeeded.append(self.succeed)
        events.settled.append(self.settle)
        events.rescued.append(self.rescue)

    def _name(self, task: str) -> str:
        if task not in self._tasks:
            if len(self._tasks) >= _MOST_TASKS:
                return OTHERS
            self._tasks.add(task)
        return task

    def start(self, held: HeldLease) -> None:
        self.started[self._name(held.job.task)] += 1

    def complete(self, held: HeldLease) -> None:
        self.ended[self._name(held.job.task), "completed"] += 1

    def succeed(self, jobs: Sequence[HeldLease]) -> None:
        for held in jobs:
            self.ended[self._name(held.job.task), "completed"] += 1
            self.lost += held.lease_state.lost

    def settle(self, held: HeldLease, ended: SettleRequest, answer: SettleResult) -> None:
        refused = answer.answer is SettleStatus.REFUSED
        loss = ended.settlement.loss
        if refused or held.lease_state.lost or (loss is not None and loss is not Loss.BEGUN):
            self.lost += 1
        if not refused:
            ending = str(ended.settlement.ending)
            self.ended[self._name(held.job.task), ending] += 1

    def rescue(self, jobs: Sequence[RescuedLease]) -> None:
        self.rescued += len(jobs)

    def counts(self) -> dict[str, Any]:
        ended: dict[str, dict[str, int]] = {}
        for (task, ending), count in dict(self.ended).items():
            ended.setdefault(task, {})[ending] = count
        return {
            "started": dict(self.started),
            "ended": ended,
            "lost": self.lost,
            "rescued": self.rescued,
        }


class CountersWriter(Service):
    # This runs on the service thread, so a blocked loop doesn't look idle.

    name = "counters"

    def __init__(self, sheet: SharedCounters, counts: Callable[[], dict[str, Any]]) -> None:
        super().__init__(_PAUSE)
        self._sheet = sheet
        self._counts = counts

    async def tick(self) -> int:
        self._sheet.write(self._counts())
        return 0

    async def close(self) -> None:
        self._sheet.write(self._counts())
