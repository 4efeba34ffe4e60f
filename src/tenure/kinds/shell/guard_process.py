"""A guard process, as seen by the worker that started it."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tenure.kinds.shell import guard

_GUARD = str(Path(__file__).with_name("guard.py"))
# A Python that isn't in the system's directories may need this to start.
_GUARD_ENVIRONMENT = ("LD_LIBRARY_PATH",)
_CHUNK = 65536
_LOOKS = 100
# Each guard of this process has a lock on this file.
_lock_file: int | None = None


def set_lock_file(fd: int) -> None:
    """Have each guard lock this file until it has killed its command."""
    global _lock_file  # noqa: PLW0603 - a process has one parent
    _lock_file = fd


def is_guarding(fd: int) -> bool:
    """Return whether a guard has a lock on this file.

    A guard locks it before it checks that its worker lives. So a guard that locks it after a dead
    worker's parent looked here starts no command.
    """
    try:
        # A lock of this kind belongs to one process. Unlike an open file, a fork doesn't copy it.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


class GuardLost(Exception):
    """The guard process died. The command and its children were killed."""


class Progress(NamedTuple):
    """A progress line of the command, and its output so far."""

    done: int
    total: int | None
    message: str | None
    log: str
    log_size: int


class GuardProcess:
    """One guard and its command. Call `close` at the end."""

    def __init__(self, spec: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._begun = b""
        self._changed = asyncio.Event()
        self._progress: Progress | None = None
        self._last: dict[str, Any] | None = None
        self._command: int | None = None
        self._is_over = False
        spec_fd = os.memfd_create("tenure-shell")
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        passed = [spec_fd] if _lock_file is None else [spec_fd, _lock_file]
        try:
            # Secrets must not be visible in the guard's arguments or environment.
            with open(spec_fd, "wb", closefd=False) as file:
                file.write(json.dumps({**spec, "env": dict(environment)}).encode())
            self._process = subprocess.Popen(  # noqa: S603 - our own file
                [sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *map(str, passed)],
                stdin=control,
                stdout=status,
                pass_fds=passed,
                start_new_session=True,
                cwd="/",
                env={name: os.environ[name] for name in _GUARD_ENVIRONMENT if name in os.environ},
            )
        except BaseException:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            for fd in (spec_fd, control, status):
                os.close(fd)
        os.set_blocking(self._control, False)
        os.set_blocking(self._status, False)
        self._loop.add_reader(self._status, self._read)

    def extend(self, stop_at: float) -> None:
        """Tell the guard of a renewal, from any thread."""
        self._send(f"extend {stop_at!r}\n")

    def stop(self, grace: float) -> None:
        """Have the guard send SIGTERM now, and SIGKILL after the grace period."""
        self._send(f"stop {grace!r}\n")

    def kill(self) -> None:
        """Have the guard kill the command now."""
        self._send("kill\n")

    def _send(self, line: str) -> None:
        # The lock keeps a late renewal from writing to a descriptor that is in use again.
        with self._lock:
            if self._control >= 0:
                # A guard that is gone or stopped doesn't read.
                with contextlib.suppress(OSError):
                    os.write(self._control, line.encode())

    async def next_report(self) -> "Progress | dict[str, Any]":
        """Wait for the next progress line, or for the end.

        Raises:
            GuardLost: The guard died without a report.
        """
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._last is not None and self._is_over:
                return self._last
            if self._is_over:
                self._kill_leftovers()
                raise GuardLost("the guard process died, so the command was killed")
            if (progress := self._progress) is not None:
                self._progress = None
                return progress

    async def end(self, grace: float) -> dict[str, Any] | None:
        """Stop the command and wait until nothing of it is left. Return the last report."""
        self.stop(grace)
        while not self._is_over:
            try:
                await self._changed.wait()
                self._changed.clear()
            except asyncio.CancelledError:
                # The lease is at risk, or the worker can't wait any longer.
                self.kill()
        if self._last is None:
            self._kill_leftovers()
        return self._last

    def _read(self) -> None:
        try:
            chunk = os.read(self._status, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._loop.remove_reader(self._status)
            self._is_over = True
            self._changed.set()
            return
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "progress" in message:
            self._progress = Progress(**message["progress"])
            self._changed.set()
        elif "started" in message:
            self._command = message["started"]
        else:
            self._last = message

    def _kill_leftovers(self) -> None:
        """Kill what a dead guard left behind: the command's group, and processes with its marks."""
        if self._command is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._command, signal.SIGKILL)
        marks = [
            f"{name}={self._environment[name]}".encode()
            for name in ("TENURE_IDEMPOTENCY_KEY", "TENURE_FENCE")
        ]
        for _ in range(_LOOKS):
            marked = [pid for pid in guard.processes() if _has_variables(pid, marks)]
            if not marked:
                return
            for pid in marked:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes. A guard that still runs kills its command then."""
        self._loop.remove_reader(self._status)
        with self._lock:
            os.close(self._control)
            self._control = -1
        os.close(self._status)
        # It exits right after it closes its end.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def _has_variables(pid: int, variables: list[bytes]) -> bool:
    with contextlib.suppress(OSError):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return all(variable in environment for variable in variables)
    return False
