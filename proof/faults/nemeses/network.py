"""The network between one worker and the server, or between the client and it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from proof.faults.nemeses.base import PAST_THE_LEASE, AtAPost, Nemesis
from support.proxy import COMMIT_CUT, QUERY_CUT

if TYPE_CHECKING:
    from random import Random

    from proof.faults.harness import Bed
    from support.proxy import Proxy

# Bytes per second, in each direction of each connection: 1 Mbit/s, and as little as a claim's
# answer takes seconds for.
_NARROW = (125_000, 12_000, 3_000)


class _HeldUp(AtAPost):
    """A worker's messages are held up; it came to something if one was seen waiting."""

    _held: bool

    def harm(self, bed: Bed) -> float | None:
        self._held = False
        return self.hinder(self.post.proxy, bed.rng)

    @abstractmethod
    def hinder(self, proxy: Proxy, rng: Random) -> float:
        """Hold messages up; for how many seconds."""

    def look(self, bed: Bed) -> bool:
        del bed
        self._held = self._held or self.post.proxy.held > 0
        return False

    def restore(self, bed: Bed) -> int:
        self.look(bed)
        self.post.proxy.restore()
        return int(self._held)


class Silence(_HeldUp):
    """Nothing passes, and neither end is notified."""

    name = "worker partitioned"

    def hinder(self, proxy: Proxy, rng: Random) -> float:
        proxy.cut()
        return rng.uniform(*PAST_THE_LEASE)


class HalfOpen(_HeldUp):
    """What the worker says arrives, and it hears nothing."""

    name = "half-open connections"

    def hinder(self, proxy: Proxy, rng: Random) -> float:
        proxy.half_open()
        return rng.uniform(*PAST_THE_LEASE)


class Delay(_HeldUp):
    """Every message comes late."""

    name = "delayed messages"

    def hinder(self, proxy: Proxy, rng: Random) -> float:
        delay = rng.choice((0.05, 0.2, 0.5))
        proxy.delay(delay, delay)
        return rng.uniform(1, 4)


class Narrow(_HeldUp):
    """Few bytes pass in a second: large answers come late, small ones hardly."""

    name = "narrow link"

    def hinder(self, proxy: Proxy, rng: Random) -> float:
        proxy.slow(rng.choice(_NARROW))
        return rng.uniform(*PAST_THE_LEASE)


class Resets(AtAPost):
    """Connections of a worker are reset."""

    name = "connections reset"
    light = True

    def harm(self, bed: Bed) -> float | None:
        return 0.0 if self.post.proxy.reset(bed.rng.choice((0.1, 0.1, 0.1, 1.0))) else None


class _CutAnswers(Nemesis):
    """Requests are carried out, and their answers never arrive."""

    light = True
    of_client: ClassVar[bool]
    commits: ClassVar[bool]
    _proxy: Proxy
    _before: int

    def strike(self, bed: Bed) -> float | None:
        self._proxy = bed.road if self.of_client else bed.rng.choice(bed.posts).proxy
        self._before = self._cut
        if self.commits:
            self._proxy.cut_after_commit()
        else:
            self._proxy.cut_after_query(share=0.2)
        return bed.rng.uniform(0.2, 1.0)

    def relieve(self, bed: Bed) -> int:
        del bed
        self._proxy.disarm()
        return self._cut - self._before

    @property
    def _cut(self) -> int:
        return self._proxy.lost(COMMIT_CUT if self.commits else QUERY_CUT)


class CutCommits(_CutAnswers):
    name = "cut between COMMIT and its answer, at a worker"
    of_client = False
    commits = True


class CutAnswers(_CutAnswers):
    name = "cut between a request and its answer, at a worker"
    of_client = False
    commits = False


class CutClient(_CutAnswers):
    name = "cut between a request and its answer, at a client"
    of_client = True
    commits = False


class SilenceClient(Nemesis):
    """The client hears nothing for a while."""

    name = "client partitioned"

    def strike(self, bed: Bed) -> float | None:
        bed.road.cut()
        return bed.rng.uniform(0.5, 2)

    def relieve(self, bed: Bed) -> int:
        held = bed.road.held
        bed.road.restore()
        return int(held > 0)
