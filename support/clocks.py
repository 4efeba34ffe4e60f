"""Clocks of processes that we start, set wrong by libfaketime (Debian's package `faketime`).

Measured with 0.9.10 and CPython 3.11: wall time is faked. CLOCK_MONOTONIC and CLOCK_BOOTTIME are
true, and so are the timeouts of select, poll, epoll, asyncio and threads' waits. `time.sleep`
is broken: it raises EINVAL, so handlers under a false clock must wait otherwise.

libfaketime's own rate ("+0 x10") is of no use here: it also divides the timeouts of select, poll
and epoll by ten, and a thread's wait with a timeout does not come back. `drift` moves wall time
alone.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from support.processes import alive

if TYPE_CHECKING:
    from types import TracebackType

_SHARED = Path("/dev/shm")  # noqa: S108 - where libfaketime keeps what it shares
_STEP = 0.1
_CACHED = 1


class FaketimeNotFoundError(Exception):
    """libfaketime is not installed; the message says what to run."""


class Clock:
    """A wall clock for child processes, wrong by `offset` seconds, which is set while they run.

    Children see a new offset within about a second. The clock must outlive them.
    """

    def __init__(self, offset: float = 0.0) -> None:
        self._library = library()
        self._offset = offset
        self._directory: Path | None = None
        self._lock = threading.Lock()
        self._rate = 1.0
        self._drifter: threading.Thread | None = None
        self._done = threading.Event()

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="tenure-clock-"))
        self._directory.chmod(0o755)  # a server runs as a user of its own
        self._write(self._offset)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._drifter is not None:
            self._drifter.join()
        if self._directory is not None:
            shutil.rmtree(self._directory)
            self._directory = None
        _sweep()

    @property
    def environment(self) -> dict[str, str]:
        """What is added to a child's environment."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": str(_CACHED),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    @property
    def offset(self) -> float:
        """How many seconds it is ahead."""
        return self._offset

    def set(self, offset: float) -> None:
        """Step to this many seconds ahead of the true time; behind, if negative."""
        with self._lock:
            self._write(offset)

    def drift(self, rate: float) -> None:
        """Run at this rate from now on, by small steps; 1 is the true rate."""
        self._rate = rate
        if self._drifter is None:
            self._drifter = threading.Thread(target=self._creep, daemon=True)
            self._drifter.start()

    @property
    def _file(self) -> Path:
        assert self._directory is not None, "use it in a with statement"  # noqa: S101 - a slip
        return self._directory / "offset"

    def _creep(self) -> None:
        before = time.monotonic()
        while not self._done.wait(_STEP):
            now = time.monotonic()
            with self._lock:
                self._write(self._offset + (now - before) * (self._rate - 1))
            before = now

    def _write(self, offset: float) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset:+.3f}\n")
        fresh.chmod(0o644)
        fresh.replace(self._file)
        self._offset = offset


def library() -> Path:
    """Where libfaketime is; the variant for programs with threads."""
    for found in sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")):
        return found
    raise FaketimeNotFoundError("libfaketime is not installed; run: apt-get install faketime")


def _sweep() -> None:
    """Remove what libfaketime left of processes that were killed."""
    for pattern in ("faketime_shm_*", "sem.faketime_sem_*"):
        for left in _SHARED.glob(pattern):
            pid = left.name.rpartition("_")[2]
            if pid.isdigit() and not alive(int(pid)):
                with contextlib.suppress(FileNotFoundError):
                    left.unlink()
