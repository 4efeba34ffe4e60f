"""Real workers for measurements: started on a database, ended by their id, with their times."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.jobs import STAMP
from support.processes import children, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_WORKER = "import sys; from tenure.worker import main; sys.exit(main('bench.jobs:app', {options}))"


class Running:
    """A worker, and the file that its handlers write their first moment to."""

    def __init__(self, process: subprocess.Popen[bytes], stamps: Path) -> None:
        self.process = process
        self._stamps = stamps

    def stamps(self) -> dict[int, float]:
        """When each numbered job began."""
        return dict(STAMP.iter_unpack(self._stamps.read_bytes()))

    def processor_time(self) -> float:
        """Seconds of processor time of the child, in user and kernel mode."""
        ticks = os.sysconf("SC_CLK_TCK")
        total = 0
        for pid in children(self.process.pid):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / ticks


@contextmanager
def worker(
    url: str, options: str, *, command: Sequence[str] | None = None, listen: bool = True
) -> Iterator[Running]:
    """A worker (or another program) on this database, as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as directory:
        stamps = Path(directory) / "stamps"
        stamps.touch()
        environment = os.environ | {
            "TENURE_DATABASE_URL": url,
            "BENCH_STAMPS": str(stamps),
            "BENCH_LISTEN": str(int(listen)),
            "TENURE_RUN_DIR": directory,
        }
        process = subprocess.Popen(
            command or [sys.executable, "-c", _WORKER.format(options=options)],
            env=environment,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent(signal.SIGTERM),  # noqa: PLW1509 - it takes no lock
        )
        try:
            yield Running(process, stamps)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a callable answers true; AssertionError when the time is up."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("did not come true in time")
        time.sleep(0.02)
