"""Programs that are compared: run by one protocol (README.md), each on a database of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from bench.speed.counting import STAMP
from bench.speed.meters import family_seconds
from support.daemons import Redis
from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.server import Server

_QUICK, _LONG = 60.0, 600.0
_STOP_WITHIN = 30.0


class ContenderError(Exception):
    """A program did not do as asked; the message carries the end of what it said."""


@dataclass(frozen=True)
class Place:
    """A fresh store for one round, and where the program's handlers leave counts and stamps."""

    url: str
    directory: Path
    server: int  # the process id of the PostgreSQL or Redis
    admin: str | None  # another database of that server, to ask it without being counted

    def count(self) -> int:
        """How many no-op handlers have finished, in all processes."""
        files = (self.directory / "counts").iterdir()
        return sum(int.from_bytes(file.read_bytes()[:8], "little") for file in files)

    def stamps(self) -> dict[int, float]:
        """When each numbered job began."""
        return dict(STAMP.iter_unpack((self.directory / "stamps").read_bytes()))

    def answer(self) -> str:
        """The end of what its programs wrote to stderr."""
        return (self.directory / "log").read_text(errors="replace")[-2000:]


@dataclass
class Running:
    """A worker under way."""

    process: subprocess.Popen[bytes]
    place: Place

    @property
    def pid(self) -> int:
        return self.process.pid

    def seconds(self) -> float:
        """Processor time of all its processes so far."""
        return family_seconds(self.pid)

    def check(self) -> None:
        if self.process.poll() is not None:
            raise ContenderError(f"the worker has ended:\n{self.place.answer()}")

    def reached(self, count: int, within: float = 180.0) -> None:
        """Wait until this many handlers have finished; looks every 20 ms, at files alone."""

        def there() -> bool:
            self.check()
            return self.place.count() >= count

        if not wait_for(there, within):
            found = self.place.count()
            raise ContenderError(f"{found} of {count} after {within:g} s:\n{self.place.answer()}")


@dataclass(frozen=True)
class Contender:
    """One program, and how it is run. `left`: SQL that answers whether any job is left."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    redis: bool = False
    left: str | None = None

    @contextmanager
    def place(self, server: Server, redis: Keeping | None = None) -> Iterator[Place]:
        """A fresh database made from one that the program has installed into, or an empty Redis."""
        with _directory() as directory:
            if self.redis:
                if redis is None:
                    raise ContenderError(f"{self.name} needs a Redis")
                redis.flush()
                yield Place(redis.url, directory, redis.pid, None)
                return
            url = server.prepared(self._template, self._install)
            try:
                yield Place(url, directory, server.cluster.pid, server.cluster.url())
            finally:
                server.drop(url)

    def call(self, place: Place, verb: str, *args: object, within: float = _LONG) -> dict[str, Any]:
        """What a verb answers; ContenderError when it fails or takes too long."""
        process = self._start(place, verb, *args, stdout=subprocess.PIPE)
        try:
            answer, _ = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise ContenderError(
                f"{self.name} {verb} took over {within:g} s:\n{place.answer()}"
            ) from None
        if process.returncode != 0:
            raise ContenderError(
                f"{self.name} {verb} ended with {process.returncode}:\n{place.answer()}"
            )
        lines = answer.decode().strip().splitlines()
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return found

    @contextmanager
    def work(self, place: Place, children: int = 1) -> Iterator[Running]:
        """Its worker, as long as the block lasts."""
        process = self._start(place, "work", children, stdout=subprocess.DEVNULL)
        try:
            yield Running(process, place)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_WITHIN)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _kill(process)

    def empty(self, place: Place) -> bool:
        """Whether no job is left; of one that does not say how to ask, always."""
        if self.left is None:
            return True
        with psycopg.connect(place.url, autocommit=True) as connection:
            row = connection.execute(self.left.encode()).fetchone()
        return not (row and row[0])

    @property
    def _template(self) -> str:
        return "speed_" + re.sub(r"[^a-z0-9]", "_", self.command[-1][-40:])

    def _install(self, url: str) -> None:
        with _directory() as directory:
            self.call(Place(url, directory, 0, None), "install", within=_QUICK)

    def _start(
        self, place: Place, verb: str, *args: object, stdout: int
    ) -> subprocess.Popen[bytes]:
        environment = {
            "BENCH_URL": place.url,
            "BENCH_COUNTS": str(place.directory / "counts"),
            "BENCH_STAMPS": str(place.directory / "stamps"),
            "TENURE_RUN_DIR": str(place.directory),
        }
        with (place.directory / "log").open("ab") as log:
            return subprocess.Popen(
                [*self.command, verb, *map(str, args)],
                env={**os.environ, **environment, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - it takes no lock
            )


class Keeping(Redis):
    """A private Redis that keeps what it is told: in a file, forced to disk every second."""

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def arguments(self) -> list[str]:
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        return [*words, "--appendonly", "yes", "--appendfsync", "everysec"]

    def flush(self) -> None:
        """Empty it."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            if not connection.recv(16).startswith(b"+OK"):
                raise ContenderError("Redis cannot be emptied")


def tenure(task: str = "noop", *, plain: bool = False, **environment: str) -> Contender:
    """Tenure's own program; `plain` without middleware and listener."""
    more = {"BENCH_TASK": task} | ({"BENCH_PLAIN": "1"} if plain else {}) | environment
    command = [sys.executable, "-m", "bench.speed.ours"]
    return Contender("Tenure", command, more, left="SELECT EXISTS (SELECT FROM tenure.job)")


def bare(batch: int = 100) -> Contender:
    """The bare loop at a size of its batches."""
    command = [sys.executable, "-m", "bench.speed.bare"]
    asks = "SELECT EXISTS (SELECT FROM bare.job)"
    return Contender(f"bare, batch {batch}", command, {"BENCH_BATCH": str(batch)}, left=asks)


@contextmanager
def _directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tenure-speed-"))
    try:
        (path / "counts").mkdir()
        (path / "stamps").touch()
        (path / "log").touch()
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a program's session, by its id."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        process.wait()
