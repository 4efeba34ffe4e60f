"""Workers as processes of their own: started, found, signalled and ended by their ids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.binaries import ROOT
from support.processes import alive, children, die_with_parent, send, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_GRACE = 4
TARGET = "proof.crash.jobs:app"
# What a worker is, as Python: a program that is given slots, children, its name and the target.
WORK = (
    "import sys; from tenure.worker import main; "
    "sys.exit(main(sys.argv[4], concurrency=int(sys.argv[1]), "
    f"processes=int(sys.argv[2]), grace={_GRACE}, name=sys.argv[3]))"
)
_END_WITHIN = 15.0
_DIE_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How many workers, with how many children of how many slots."""

    workers: int
    processes: int
    slots: int

    @property
    def all_slots(self) -> int:
        """How many handlers can run at once."""
        return self.workers * self.processes * self.slots


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker runs: the command before its own, and what its environment has else."""

    before: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class Worker:
    """One worker: its parent process, and what can be seen of it from outside."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, place: Place) -> None:
        self.process = process
        self.name = name
        self.place = place
        self.pid = process.pid
        self._requests: set[signal.Signals] = set()

    def dismiss(self, request: signal.Signals) -> None:
        """Send it a signal by which it is to end."""
        self._requests.add(request)
        send(self.pid, request)

    @property
    def deserted(self) -> bool:
        """Whether the parent has ended otherwise than it was asked to."""
        code = self.process.poll()
        drained = code == 0 and signal.SIGTERM in self._requests
        return code is not None and not drained and -code not in self._requests

    def children(self) -> list[int]:
        """The ids of its children."""
        return children(self.pid)

    def family(self) -> list[int]:
        """The parent, its children, the processes of handlers under these; in this order."""
        offspring = self.children()
        return [self.pid, *offspring, *(h for child in offspring for h in children(child))]

    @property
    def gone(self) -> bool:
        """Whether the parent has ended."""
        return self.process.poll() is not None


class Fleet:
    """Some workers. What it starts must be ended; the kernel does so if the suite cannot."""

    def __init__(
        self,
        shape: Shape,
        directory: Path,
        environment: dict[str, str],
        *,
        target: str = TARGET,
        places: Sequence[Place] = (Place(),),
        work: str = WORK,
    ) -> None:
        self.shape = shape
        self.workers: list[Worker] = []
        self.outlived: list[int] = []
        # Workers that ended by themselves, with their exit codes.
        self.deserted: list[str] = []
        self._directory = directory
        self._environment = os.environ | environment
        self._target = target
        self._places = places
        self._work = work
        self._number = 0
        self._dying: list[tuple[float, list[int]]] = []

    def start_all(self) -> None:
        """Start as many as there are to be."""
        for number in range(self.shape.workers):
            self.start(self._places[number % len(self._places)])

    def start(self, place: Place) -> Worker:
        """Start one more worker; what it logs is kept."""
        self._number += 1
        name = f"w{self._number}"
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - its own workers
                [
                    *place.before,
                    sys.executable,
                    "-c",
                    self._work,
                    str(self.shape.slots),
                    str(self.shape.processes),
                    name,
                    self._target,
                ],
                cwd=ROOT,
                env=self._environment | {**place.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        worker = Worker(process, name, place)
        self.workers.append(worker)
        return worker

    def supervise(self) -> None:
        """Start a new worker for each that has ended; look whether the families have, too."""
        for dying in [d for d in self._dying if time.monotonic() >= d[0]]:
            self._dying.remove(dying)
            self.outlived += filter(alive, dying[1])
        for worker in [w for w in self.workers if w.gone]:
            self._take_leave(worker)
            self.workers.remove(worker)
            self.start(worker.place)

    def _take_leave(self, worker: Worker) -> None:
        if worker.deserted:
            self.deserted.append(f"{worker.name}: exit code {worker.process.returncode}")

    def bury(self, worker: Worker, family: list[int], *, within: float) -> None:
        """Wait for a parent that was killed; who of its family lives on after that is noted."""
        worker.process.wait(_DIE_WITHIN)
        self._dying.append((time.monotonic() + within, family))

    def end(self) -> None:
        """Drain all workers; kill by id those that are left after that."""
        families = {pid for worker in self.workers for pid in worker.family()}
        families |= {pid for _, family in self._dying for pid in family if alive(pid)}
        for pid in families:
            send(pid, signal.SIGCONT)
        for worker in self.workers:
            self._take_leave(worker)
            worker.process.send_signal(signal.SIGTERM)
        wait_for(lambda: all(worker.gone for worker in self.workers), _END_WITHIN)
        for worker in self.workers:
            families |= set() if worker.gone else set(worker.family())
            worker.process.kill()
            worker.process.wait(_DIE_WITHIN)
        # With their parents gone the kernel ends them too; do not rely on that.
        if not wait_for(lambda: not any(map(alive, families)), _DIE_WITHIN):
            for pid in filter(alive, families):
                send(pid, signal.SIGKILL)
        self.workers.clear()
