"""What handlers of a measured program leave behind: a count, and when each numbered job began."""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path

STAMP = struct.Struct("=qd")


class Count:
    """The number of handlers that this process has finished, in a file with its id."""

    def __init__(self) -> None:
        path = Path(os.environ["BENCH_COUNTS"]) / str(os.getpid())
        path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._there = memoryview(mmap.mmap(file.fileno(), 8)).cast("q")
        self._lock = threading.Lock()

    def add(self, number: int) -> None:
        with self._lock:
            self._there[0] += number


class Stamps:
    """When handlers of numbered jobs began."""

    def __init__(self) -> None:
        self._file = os.open(os.environ["BENCH_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, number: int) -> None:
        os.write(self._file, STAMP.pack(number, now()))


def now() -> float:
    """The time that stamps and sends are told in."""
    return time.clock_gettime(time.CLOCK_REALTIME)
