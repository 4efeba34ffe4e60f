"""A log that is not read, or is locked, stops neither the watchdog nor the work."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.workers import Worker, soon
from tests.crash import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.workers import Bed
    from tests.crash.conftest import Tell


class Reader:
    """The other end of a worker's stderr."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.text = ""

    def read(self) -> None:
        """Read on, from here to the end of the test."""

        def read() -> None:
            while data := os.read(self._fd, 1 << 16):
                self.text += data.decode(errors="replace")

        threading.Thread(target=read, daemon=True).start()


@contextmanager
def unread(bed: Bed, directory: Path, **options: object) -> Iterator[tuple[Worker, Reader]]:
    """A worker whose stderr is not read until the reader starts."""
    read_end, write_end = os.pipe()
    with Worker(guarded.TARGET, bed.url, directory, None, write_end, **options) as worker:
        os.close(write_end)
        yield worker, Reader(read_end)


def test_a_full_pipe_delays_no_kill_and_no_signal(bed: Bed, tmp_path: Path, tell: Tell) -> None:
    """Shows R4: what the parent must kill it kills, whether or not it can say so."""
    with unread(bed, tmp_path, grace=3) as (worker, _):
        bed.enqueue([guarded.loud.bind(bed.path("loud"), 20_000)])
        soon(lambda: bool(bed.effects("loud").at), 60, "the handler waits for its log")
        bed.enqueue([guarded.freeze.bind(bed.path("frozen"))])
        soon(lambda: bool(bed.effects("frozen").at), 30, "nothing runs after that")
        [frozen] = worker.children
        frozen_at = bed.effects("frozen").at[0]
        soon(lambda: frozen not in worker.children, 10, "the frozen child was not killed")
        tell(f"killed {time.time() - frozen_at:.1f} s after it stood still")
        soon(lambda: bool(worker.children), 10, "no child came in its place")
        began = time.monotonic()
        worker.send(signal.SIGTERM)
        assert worker.wait(10) == 0
        tell(f"ended {time.monotonic() - began:.1f} s after a SIGTERM")


def test_dropped_lines_are_counted_when_reading_resumes(bed: Bed, tmp_path: Path) -> None:
    with unread(bed, tmp_path) as (_, reader):
        bed.enqueue([guarded.loud.bind(bed.path("loud"), 20_000)])
        soon(lambda: bed.ended() == 1, 60, "the handler waits for its log")
        reader.read()

        def counted() -> int:
            lines = reader.text.splitlines()
            counts = [int(line.split()[3]) for line in lines if "log records dropped" in line]
            return sum(counts) + reader.text.count("x" * 1000)

        soon(lambda: counted() == 20_000, 20, "some are neither written nor counted")
        assert "log records dropped" in reader.text


def test_locks_left_locked_in_logging_stop_no_work(bed: Bed, tmp_path: Path) -> None:
    """Of the module itself and of all handlers: failures are logged, jobs run, a drain ends."""
    with Worker(guarded.TARGET, bed.url, tmp_path, None, grace=3) as worker:
        bed.enqueue([guarded.lock_up_logging.bind(bed.path("locked"))])
        soon(lambda: bed.ended() == 1, 30, "it did not run")
        [child] = worker.children
        bed.enqueue([guarded.fail.bind(), guarded.nap.bind(bed.path("nap"), 0.2)] * 3)
        soon(lambda: bed.ended() == 4, 20, "jobs stand still")
        failed = "SELECT count(*) FROM tenure.job_failed"
        soon(lambda: bed.count(failed) == 3, 20, "failures stand still")
        soon(lambda: worker.log().count("as it must; ") == 3, 5, "failures were not logged")
        assert worker.children == {child}
        began = time.monotonic()
        worker.send(signal.SIGTERM)
        assert worker.wait(10) == 0
        assert time.monotonic() - began < 5
