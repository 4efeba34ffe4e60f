"""Where one queue is tried: its store, its workers as whole trees of processes, and the history
that its handlers write, which is a plain file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.peers import environments
from support.binaries import ROOT
from support.processes import children, die_with_parent, send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from threading import Event

    from proof.peers.field import Way

_QUICK = 120.0
_LOOK = 0.1


class NotTried(Exception):
    """The queue could not be tried; the message says why."""


class TooLate(Exception):
    """What the test is about was over before the signal; on a busy machine that happens."""


class Stopped(Exception):
    """The whole run is being ended."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a handler said: start or end, of which job, by which worker, and when."""

    what: str
    number: int
    worker: str
    at: float


class Worker:
    """One worker of a queue, with every process that it has started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._frozen: list[int] = []

    def freeze(self) -> None:
        """SIGSTOP to all: to its group at once, then to those outside, until none is left."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGSTOP)
        while fresh := [pid for pid in _tree(self._process.pid) if pid not in self._frozen]:
            for pid in fresh:
                send(pid, signal.SIGSTOP)
            self._frozen += fresh

    def thaw(self) -> None:
        """SIGCONT to all."""
        for pid in self._frozen:
            send(pid, signal.SIGCONT)
        self._frozen = []

    def kill(self) -> None:
        """SIGKILL to all."""
        self.freeze()
        for pid in self._frozen:
            send(pid, signal.SIGKILL)
        self._process.wait()


class Bed:
    """One queue with a store of its own. `over` ends every wait when the run is ended."""

    def __init__(self, way: Way, url: str, directory: Path, over: Event) -> None:
        self.way = way
        self._directory = directory
        self._over = over
        self._history = directory / "history"
        directory.mkdir(parents=True)
        self._history.touch()
        self._command = [_python(way.program), "-m", f"proof.peers.programs.{way.program}"]
        self._environment = os.environ | {
            "PEER_URL": url,
            "PEER_WAY": way.way,
            "PEER_HISTORY": str(self._history),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}" if way.program == "tenure" else str(ROOT),
            "TENURE_RUN_DIR": str(directory / "run"),
        }

    def call(self, *words: str) -> Any:
        """What the queue's program answers to a verb."""
        with (self._directory / "log").open("ab") as log:
            try:
                done = subprocess.run(  # noqa: S603 - our own program
                    [*self._command, *words],
                    env=self._environment,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    timeout=_QUICK,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise NotTried(f"{words[0]} took over {_QUICK:g} s") from None
        if done.returncode:
            output = (self._directory / "log").read_text(errors="replace")
            raise NotTried(f"{words[0]} ended with {done.returncode}: {output[-600:]}")
        lines = done.stdout.decode().splitlines()
        return json.loads(lines[-1]) if lines else None

    def keep(self, found: Mapping[str, Any]) -> None:
        """Put what was found beside the history, for who looks into a run that is not over."""
        (self._directory / "found.json").write_text(json.dumps(found, indent=1))

    def store(self) -> Mapping[int, Sequence[Any]]:
        """Of each job that the store knows, its word for the state and the result."""
        return {int(number): known for number, known in self.call("store").items()}

    @contextmanager
    def worker(self, name: str, seconds: float) -> Iterator[Worker]:
        """A worker whose handlers take this long; it is killed in the end."""
        with (self._directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [*self._command, "work"],
                env=self._environment | {"PEER_WORKER": name, "PEER_SECONDS": str(seconds)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        worker = Worker(process)
        try:
            yield worker
        finally:
            worker.kill()

    def lines(self) -> list[Line]:
        """The history so far."""
        found = []
        for text in self._history.read_text().splitlines():
            what, number, worker, at = text.split()
            found.append(Line(what, int(number), worker, float(at)))
        return found

    def let_go(self) -> None:
        """Let the handlers end that still run."""
        self._history.with_name("history.let-go").touch()

    def count(self, what: str, worker: str | None = None) -> int:
        """How often this was said, by this worker or by any."""
        return sum(
            line.what == what and (worker is None or line.worker == worker) for line in self.lines()
        )

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        if self._over.wait(seconds):
            raise Stopped

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Return whether the condition came true within this many seconds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            self.pause(_LOOK)
        return True


def _python(program: str) -> str:
    if program == "tenure":
        return sys.executable
    python = environments.python(program)
    if isinstance(python, environments.Unavailable):
        raise NotTried(python.reason)
    return str(python)


def _tree(root: int) -> list[int]:
    pids = [root]
    for pid in pids:
        pids += children(pid)
    return pids
