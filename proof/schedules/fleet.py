"""Scheduler processes as an operator starts them: `tenure scheduler module:app`, ended by id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from support.binaries import ROOT
from support.processes import die_with_parent, wait_for

if TYPE_CHECKING:
    from pathlib import Path

_END_WITHIN = 15.0


class Scheduler:
    """One process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.process.kill()
        self.process.wait(_END_WITHIN)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.process.terminate()
        return self.process.wait(_END_WITHIN)


class Fleet:
    """Schedulers on one database. Leave it, and all have ended."""

    def __init__(
        self, url: str, directory: Path, environment: dict[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._environment = (
            os.environ
            | {"TENURE_DATABASE_URL": url, "TENURE_RUN_DIR": str(directory / "run")}
            | (environment or {})
        )
        self._number = 0
        self.running: list[Scheduler] = []
        self.died: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_all()

    def start(self, target: str) -> Scheduler:
        """Start one more."""
        self._number += 1
        log = self._directory / f"scheduler-{self._number}.log"
        with log.open("ab") as out:
            process = subprocess.Popen(  # noqa: S603 - our own scheduler
                [sys.executable, "-m", "tenure", "scheduler", target],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
            )
        self.running.append(Scheduler(process, log))
        return self.running[-1]

    def kill(self, scheduler: Scheduler) -> None:
        """SIGKILL one."""
        self.running.remove(scheduler)
        if scheduler.gone:
            self.died.append(f"{scheduler.log.name}: ended by itself, {scheduler.process.poll()}")
        scheduler.kill()

    def stop(self, scheduler: Scheduler) -> None:
        """SIGTERM one; it must end well."""
        self.running.remove(scheduler)
        code = scheduler.stop()
        if code:
            self.died.append(f"{scheduler.log.name}: ended with {code}")

    def stop_all(self) -> None:
        """SIGTERM all, then SIGKILL those that are left."""
        for scheduler in self.running:
            if scheduler.gone:
                self.died.append(f"{scheduler.log.name}: ended with {scheduler.process.poll()}")
            else:
                scheduler.process.terminate()
        wait_for(lambda: all(scheduler.gone for scheduler in self.running), _END_WITHIN)
        for scheduler in self.running:
            scheduler.kill()
        self.running.clear()
