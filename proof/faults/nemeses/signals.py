"""Signals: processes that die, and processes that sleep through their leases."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from proof.faults.nemeses.base import PAST_THE_LEASE, AtAPost, Nemesis
from support.freezer import Freezer
from support.limits import ProcessorLimit
from support.processes import alive, children, send, stopped, wait_for
from tenure.worker.processes import kill_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.faults.harness import Bed

# How long children that wake up have before their parents do.
_ALONE = 0.5
_SEEN_WITHIN = 2.0
# Of a core, in microseconds of a tenth of a second.
_SHARES = (2_000, 5_000, 20_000)


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
        return _gone(child)


class KillWorker(AtAPost):
    """Parent, children and all that they have started, as who supervises a group of processes
    does; a new worker is started in its place."""

    name = "kill -9 of a worker"

    def harm(self, bed: Bed) -> float | None:
        del bed
        parent = self.post.parent
        offspring = self.post.children()
        self.post.dismiss(signal.SIGKILL)
        for child in offspring:
            kill_session(child)
        return _gone(parent)


class StopWorker(AtAPost):
    """Parent and children sleep past their leases: they wake up believing in them."""

    name = "SIGSTOP of a worker past the lease"

    def harm(self, bed: Bed) -> float | None:
        self._asleep = self.post.family()
        self._stood_still = _stop(self._asleep)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def restore(self, bed: Bed) -> int:
        # The children first: for a moment nothing keeps them from offering their results.
        del bed
        for pid in reversed(self._asleep):
            send(pid, signal.SIGCONT)
        return int(self._stood_still)


class SuspendAll(Nemesis):
    """Every worker sleeps past its leases, as on a host that is suspended: no worker rescues them,
    and all wake up at once."""

    name = "all workers suspended past the lease"

    def strike(self, bed: Bed) -> float | None:
        if any(post.struck for post in bed.posts):
            return None
        self._parents = [post.parent for post in bed.posts]
        self._asleep = [pid for post in bed.posts for pid in post.family()]
        for post in bed.posts:
            post.struck = True
        self._stood_still = _stop(self._asleep)
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
        return int(self._stood_still)


class Freeze(AtAPost):
    """The whole tree stands still by the kernel's freezer, as a machine does that is suspended."""

    name = "frozen past the lease"

    def harm(self, bed: Bed) -> float | None:
        self._freezer = bed.hold(Freezer())
        self._freezer.freeze(self.post.parent)
        return bed.rng.uniform(*PAST_THE_LEASE)

    def restore(self, bed: Bed) -> int:
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
        self._stood_still = _stop([self._child])
        return bed.rng.uniform(*PAST_THE_LEASE)

    def restore(self, bed: Bed) -> int:
        del bed
        # Its parent has ended it by now; if its id is another's, that one is awake anyway.
        send(self._child, signal.SIGCONT)
        return int(self._stood_still)


class Deploy(AtAPost):
    """SIGTERM: the worker drains, and another comes in its place."""

    name = "rolling restart"
    gentle = True

    def harm(self, bed: Bed) -> float | None:
        del bed
        self.post.dismiss(signal.SIGTERM)
        return 0.0


class KillClient(Nemesis):
    """The program that enqueues, at any point of its work; another continues after it."""

    name = "kill -9 of a client"

    def strike(self, bed: Bed) -> float | None:
        return 0.0 if bed.kill_client() else None


class Starve(AtAPost):
    """The worker gets hardly any processor time for a while, as on a machine that is overrun."""

    name = "starved of processor time"

    def harm(self, bed: Bed) -> float | None:
        self._limit = bed.keep(ProcessorLimit(bed.rng.choice(_SHARES)))
        self._limit.take(self.post.family())
        return bed.rng.uniform(*PAST_THE_LEASE)

    def restore(self, bed: Bed) -> int:
        del bed
        waits = self._limit.waits
        self._limit.remove()
        return int(waits > 0)


def _stop(pids: Sequence[int]) -> bool:
    """SIGSTOP; whether all that had not ended were seen to stand still."""
    for pid in pids:
        send(pid, signal.SIGSTOP)
    still = wait_for(lambda: all(stopped(pid) or not alive(pid) for pid in pids), _SEEN_WITHIN)
    return still and stopped(pids[0])


def _gone(pid: int) -> float | None:
    """What is told of a fault that is over with the end of a process, if that is seen."""
    return 0.0 if wait_for(lambda: not alive(pid), _SEEN_WITHIN) else None
