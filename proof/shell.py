"""`just prove shell [--short] [--seed N]`: workers are killed and stopped while commands run that
fork daemons and ignore SIGTERM; nothing of a command outlives its lease, or the start of the next
attempt."""

from __future__ import annotations

import argparse
import json
import os
import pwd
import secrets
import shutil
import signal
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from support.cluster import Cluster
from support.databases import Databases
from support.processes import send, wait_for
from support.store import install
from support.workers import Bed, Worker
from tenure import Tenure
from tests.kinds.shell_acts import WRITES, marked, writes

if TYPE_CHECKING:
    from tenure._model.ids import JobId

_DIRECTORY = ROOT / ".cache/proof/shell"
_TARGET = "tests.kinds.shell_app:app"
LEASE = 3.0
_KILLS, _KILLS_SHORT = 200, 6
_COMMANDS = 3
_PATIENCE = 60.0
_KINDS = ("child", "worker", "stopped")


class Run:
    """One database, and one worker that is replaced when it is dead."""

    def __init__(self, url: str, report: Report) -> None:
        self._bed = Bed(url, _DIRECTORY)
        self._app = Tenure(url)
        self._report = report
        self._worker = self._start()
        self.slowest = 0.0
        self.outlived: list[str] = []
        self.overlapping: list[str] = []
        self.unfinished: list[str] = []

    def _start(self) -> Worker:
        table = {
            "allow": [sys.executable],
            "cwd": [str(_DIRECTORY)],
            "env": ["MARK"],
            "user": pwd.getpwuid(os.geteuid()).pw_name,
        }
        environment = {"TENURE_KINDS_SHELL": json.dumps(table)}
        return Worker(_TARGET, self._bed.url, _DIRECTORY, environment, kinds="shell")

    def round(self, kind: str) -> None:
        """Start commands, hit the worker in the middle of them, and look at what is left."""
        jobs = dict(self._enqueue() for _ in range(_COMMANDS))
        if not wait_for(
            lambda: all(writes(_DIRECTORY / mark) for mark in jobs.values()), _PATIENCE
        ):
            self.unfinished += [f"{kind}: {job_id} does not start" for job_id in jobs]
            return
        fences = {mark: min(writes(_DIRECTORY / mark)) for mark in jobs.values()}
        hit_at = time.monotonic()
        self._hit(kind)
        for mark, fence in fences.items():
            variables = {"MARK": mark, "TENURE_FENCE": str(fence)}
            # The lease was renewed at most a third of it before.
            left = LEASE - (time.monotonic() - hit_at)
            if not wait_for(partial(_is_gone, variables), max(left, 0.0)):
                self.outlived.append(f"{kind}: {mark}, fence {fence}")
        self.slowest = max(self.slowest, time.monotonic() - hit_at)
        self._replace(kind)
        for job_id, mark in jobs.items():
            if not wait_for(partial(self._has_ended, job_id), _PATIENCE):
                self.unfinished.append(f"{kind}: job {job_id}")
            self._judge(kind, mark)

    def _enqueue(self) -> tuple[JobId, str]:
        mark = uuid4().hex
        call = self._app.shell([sys.executable, "-I", "-c", WRITES], env={"MARK": mark})
        [job_id] = self._bed.enqueue([call.using(max_attempts=5).bind()])
        return job_id, mark

    def _hit(self, kind: str) -> None:
        children = self._worker.children
        if kind == "child":
            for child in children:
                send(child, signal.SIGKILL)
        elif kind == "worker":
            send(self._worker.pid, signal.SIGKILL)
        else:
            for pid in (self._worker.pid, *children):
                send(pid, signal.SIGSTOP)
        self._report.fault(kind)

    def _replace(self, kind: str) -> None:
        if kind != "child":
            self._worker.kill()
            self._worker = self._start()

    def _has_ended(self, job_id: JobId) -> bool:
        return self._bed.job(job_id).ended_at is not None

    def _judge(self, kind: str, mark: str) -> None:
        """Each fence wrote only before the next one did."""
        written = writes(_DIRECTORY / mark)
        fences = sorted(written)
        for one, following in pairwise(fences):
            if max(written[one]) >= min(written[following]):
                self.overlapping.append(f"{kind}: {mark}, fences {one} and {following}")
        (_DIRECTORY / mark).unlink()

    def close(self) -> list[int]:
        """End the worker; the guards and commands that are left."""
        self._worker.kill()
        wait_for(lambda: not _guards(), LEASE)
        self._app.close()
        self._bed.close()
        return _guards()


def _is_gone(variables: dict[str, str]) -> bool:
    return not marked(variables)


def _guards() -> list[int]:
    """The guards of this checkout's workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(ROOT / "src/tenure/kinds/shell/guard.py").encode() in words:
                found.append(int(entry.name))
    return found


def prove(*, kills: int, seed: int) -> Report:
    """Run it on a private server."""
    report = Report({"seed": seed, "kills": kills})
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    _DIRECTORY.mkdir(parents=True)
    report.part("shell")
    rng = Random(seed)  # noqa: S311 - to be repeated
    with Cluster(15) as cluster:
        databases = Databases(cluster)
        run = Run(databases.create(databases.template("tenure", install)), report)
        try:
            for number in range(kills):
                run.round(_KINDS[number] if number < len(_KINDS) else rng.choice(_KINDS))
        finally:
            left = run.close()
    report.at_least("times that a worker was killed or stopped", len(report.faults), kills)
    report.note("commands", kills * _COMMANDS)
    report.note("longest time until nothing was left", round(run.slowest, 2), "s")
    report.none("commands that outlived their lease", run.outlived)
    report.none("attempts that overlapped the next one", run.overlapping)
    report.none("jobs that did not end", run.unfinished, timed=True)
    report.none("guards that were left at the end", left)
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove shell", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{_KILLS_SHORT} kills")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    options = parser.parse_args(argv)
    kills = options.kills or (_KILLS_SHORT if options.short else _KILLS)
    path = _DIRECTORY.with_suffix(".json")
    return tried(lambda: prove(kills=kills, seed=options.seed), path, short=options.short)
