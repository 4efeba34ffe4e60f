"""The network between one worker and the server, or between the client and it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from proof.faults.nemeses.base import PAST_THE_LEASE, AtAPost, Nemesis
from support.proxy import COMMIT_CUT, QUERY_CUT

if TYPE_CHECKING:
    from proof.faults.bed import Bed
    from support.proxy import Proxy


class Silence(AtAPost):
    """Nothing passes, and nobody is told."""

    name = "worker partitioned"

    def harm(self, bed: Bed) -> float | None:
        self.post.proxy.cut()
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        self.post.proxy.mend()
        return 1


class HalfOpen(AtAPost):
    """What the worker says arrives, and it hears nothing."""

    name = "half-open connections"

    def harm(self, bed: Bed) -> float | None:
        self.post.proxy.half_open()
        return bed.rng.uniform(*PAST_THE_LEASE)

    def mend(self, bed: Bed) -> int:
        del bed
        self.post.proxy.mend()
        return 1


class Delay(AtAPost):
    """Every message comes late."""

    name = "delayed messages"

    def harm(self, bed: Bed) -> float | None:
        delay = bed.rng.choice((0.05, 0.2, 0.5))
        self.post.proxy.delay(delay, delay)
        return bed.rng.uniform(1, 4)

    def mend(self, bed: Bed) -> int:
        del bed
        self.post.proxy.mend()
        return 1


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
        return self._proxy.counts[COMMIT_CUT if self.commits else QUERY_CUT]


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
        bed.road.mend()
        return 1
