"""Signals: processes that die, and processes that sleep through their leases."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

from proof.faults.nemeses.base import PAST_THE_LEASE, AtAPost, Nemesis
from support.freezer import Freezer
from support.processes import children, send

if TYPE_CHECKING:
    from proof.faults.bed import Bed

# How long children that wake up have before their parents do.
_ALONE = 0.5


class KillChild(AtAPost):
    """A child, with the processes of its handlers; its parent lives on."""

    name = "kill -9 of a child"

    def harm(self, bed: Bed) -> float | None:
        offspring = self.post.children()
        if not offspring:
            return None
        child = bed.rng.choice(offspring)
        for pid in (child, *children(child)):
            send(pid, signal.SIGKILL)
        return 0.0


class KillWorker(AtAPost):
    """Parent and children; a new worker is started in its place."""

    name = "kill -9 of a worker"

    def harm(self, bed: Bed) -> float | None:
        del bed
        for pid in self.post.family():
            send(pid, signal.SIGKILL)
        return 0.0


class StopWorker(AtAPost):
    """Parent and children sleep past their leases: they wake up believing in them."""

    name = "SIGSTOP of a worker past the lease"

    def harm(self, bed: Bed) -> float | None:
        self._asleep = self.post.family()
        for pid in self._asleep:
            send(pid, signal.SIGSTOP)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        # The children first: for a moment nobody keeps them from offering their results.
        del bed
        for pid in reversed(self._asleep):
            send(pid, signal.SIGCONT)
        return 1


class SuspendAll(Nemesis):
    """Every worker sleeps past its leases, as on a host that is suspended: nobody rescues them,
    and all wake up at once."""

    name = "all workers suspended past the lease"

    def strike(self, bed: Bed) -> float | None:
        if any(post.struck for post in bed.posts):
            return None
        self._parents = [post.parent for post in bed.posts]
        self._asleep = [pid for post in bed.posts for pid in post.family()]
        for post in bed.posts:
            post.struck = True
        for pid in self._asleep:
            send(pid, signal.SIGSTOP)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def relieve(self, bed: Bed) -> int:
        # The children first, as above, and here for longer.
        for pid in self._asleep:
            if pid not in self._parents:
                send(pid, signal.SIGCONT)
        time.sleep(_ALONE)
        for pid in self._parents:
            send(pid, signal.SIGCONT)
        for post in bed.posts:
            post.struck = False
        return 1


class Freeze(AtAPost):
    """The whole tree stands still by the kernel's freezer, as a machine does that is suspended."""

    name = "frozen past the lease"

    def harm(self, bed: Bed) -> float | None:
        self._freezer = bed.keep(Freezer())
        self._freezer.freeze(self.post.parent)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        self._freezer.thaw()
        return 1


class StopChild(AtAPost):
    """A child sleeps; its parent is awake and ends it when its time is over."""

    name = "SIGSTOP of a child past the lease"

    def harm(self, bed: Bed) -> float | None:
        offspring = self.post.children()
        if not offspring:
            return None
        self._child = bed.rng.choice(offspring)
        send(self._child, signal.SIGSTOP)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        # Its parent has ended it by now; if its id is another's, that one is awake anyway.
        send(self._child, signal.SIGCONT)
        return 1


class Deploy(AtAPost):
    """SIGTERM: the worker drains, and another comes in its place."""

    name = "rolling restart"
    gentle = True

    def harm(self, bed: Bed) -> float | None:
        del bed
        send(self.post.parent, signal.SIGTERM)
        return 0.0


class KillClient(Nemesis):
    """The program that enqueues, wherever it is in its work; another goes on after it."""

    name = "kill -9 of a client"

    def strike(self, bed: Bed) -> float | None:
        bed.kill_client()
        return 0.0


class Starve(AtAPost):
    """The worker gets hardly any processor time for a while, as on a machine that is overrun."""

    name = "starved of processor time"

    def harm(self, bed: Bed) -> float | None:
        self._starved = self.post.family()
        for pid in self._starved:
            _nice(pid, 19)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        for pid in self._starved:
            _nice(pid, 0)
        return 1


def _nice(pid: int, value: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, pid, value)
