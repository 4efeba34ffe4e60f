"""The workers of a run: posts, each with a worker that is replaced when it ends."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from support.processes import alive, children, send, wait_for
from support.proxy import Proxy
from support.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from random import Random

_TARGET = "proof.faults.harmful:app"
_PROCESSES = 1
_GRACE = 4
_END_WITHIN = 20.0
_DIE_WITHIN = 10.0


class Post:
    """A place for one worker, behind a proxy; `environment` is for the next worker."""

    def __init__(
        self,
        number: int,
        url: str,
        directory: Path,
        usual: Mapping[str, str],
        rng: Random,
        slots: int,
    ) -> None:
        self.name = f"w{number}"
        self.proxy = Proxy(url, rng)
        self.environment: dict[str, str] = {}
        self.struck = False
        # Workers that ended by themselves.
        self.deserted: list[str] = []
        self._requests: set[signal.Signals] = set()
        self._directory = directory
        self._usual = usual
        self._slots = slots
        self._worker: Worker | None = None

    def fill(self) -> None:
        """Start a worker, unless one is there."""
        if self._worker is None or not self._worker.alive:
            self._take_leave()
            self._worker = Worker(
                _TARGET,
                self.proxy.url,
                self._directory,
                dict(self._usual) | self.environment,
                concurrency=self._slots,
                processes=_PROCESSES,
                grace=_GRACE,
                name=self.name,
            )

    def dismiss(self, request: signal.Signals) -> None:
        """Send the worker a signal by which it is to end; the next one is started by `fill`."""
        parent = self.parent
        self._requests.add(request)
        send(parent, request)

    def _take_leave(self) -> None:
        """Note a worker that has ended otherwise than it was asked to."""
        if self._worker is None:
            return
        code = self._worker.wait(0)
        drained = code == 0 and signal.SIGTERM in self._requests
        if not drained and -code not in self._requests:
            requests = ", ".join(request.name for request in self._requests) or "nothing"
            words = "".join(self._worker.log().splitlines()[-1:])
            self.deserted.append(f"{self.name}: code {code} after {requests}: {words}")
        self._requests.clear()

    @property
    def parent(self) -> int:
        """The worker's process id."""
        self.fill()
        assert self._worker is not None
        return self._worker.pid

    def children(self) -> list[int]:
        """The ids of the worker's children."""
        return children(self.parent)

    def family(self) -> list[int]:
        """The parent, its children, and the processes of handlers under these."""
        offspring = self.children()
        return [self.parent, *offspring, *(pid for c in offspring for pid in children(c))]

    def end(self) -> None:
        """Wake and drain it; kill by id what is left after that."""
        if self._worker is None or not self._worker.alive:
            self._take_leave()
            return
        family = self.family()
        for pid in family:
            send(pid, signal.SIGCONT)
        self._worker.send(signal.SIGTERM)
        wait_for(lambda: self._worker is None or not self._worker.alive, _END_WITHIN)
        self._worker.kill()
        wait_for(lambda: not any(map(alive, family)), _DIE_WITHIN)
        for pid in filter(alive, family):
            send(pid, signal.SIGKILL)
