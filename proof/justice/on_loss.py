"""`just prove on_loss [--short] [--seed N] [--lease S]`: jobs that must not begin twice.

Tasks with `on_loss="fail"` and one attempt go through kills at every phase of a handler, outages,
table locks and drains. No handler may begin a second time; each job must end.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import psycopg

from proof.crash.fleet import Shape
from proof.justice import careful, judge
from proof.justice.ledger import END, START
from proof.justice.stage import prove
from support.processes import send

if TYPE_CHECKING:
    from proof.justice.ledger import Mark
    from proof.justice.stage import Stage

_FULL = 500
_SHORT = 40
_SHAPE = Shape(workers=2, processes=2, slots=4)
_LIVE = 10
# What strikes: a process at a phase of its handler, a whole worker, a drain, the server, the table.
_STRIKES = (
    "process at its start",
    "worker at any time",
    "process at its end",
    "drain",
    "process at any time",
    "server away",
    "worker at a start",
    "table locked",
)
_SHORT_STRIKES = _STRIKES[:6]


class Careful:
    """One run."""

    def __init__(self, stage: Stage, jobs: int) -> None:
        self._stage = stage
        self._bed = stage.bed("on_loss", _SHAPE)
        self._count = jobs
        self._jobs: list[int] = []

    def run(self) -> None:
        """Strike until all jobs were enqueued, let them end, and judge."""
        bed, stage = self._bed, self._stage
        strikes, number = _SHORT_STRIKES if stage.short else _STRIKES, 0
        give_up_at = time.monotonic() + 20 + self._count
        try:
            with bed:
                while time.monotonic() < give_up_at:
                    self._feed()
                    if len(self._jobs) >= self._count and number >= len(strikes):
                        break
                    if number < len(strikes) or not stage.short:
                        self._strike(strikes[number % len(strikes)])
                        number += 1
                    self._pause(stage.rng.uniform(0.2, 0.8))
                bed.wait_ended(3 * stage.lease + 5)
            self._judge()
        finally:
            bed.close()

    def _feed(self) -> None:
        rng = self._stage.rng
        live = self._bed.count("SELECT count(*) FROM tenure.job")
        room = min(_LIVE - live, self._count - len(self._jobs))
        calls = [rng.choice(careful.TASKS).bind(rng.uniform(0.2, 1.5)) for _ in range(room)]
        self._jobs += self._bed.enqueue([call.job for call in calls])

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._bed.supervise()
            self._feed()
            time.sleep(0.05)

    def _aim(self, phase: str) -> Mark | None:
        """Wait for a handler that is just there."""
        kind = {"start": START, "end": END}.get(phase.rpartition(" ")[2])
        until = time.monotonic() + 2
        self._bed.ledger.read()
        while time.monotonic() < until:
            self._feed()
            marks = [m for m in self._bed.ledger.read() if kind is None or m.kind == kind]
            if marks:
                return self._stage.rng.choice(marks)
            time.sleep(0.01)
        return None

    def _strike(self, what: str) -> None:
        stage, bed = self._stage, self._bed
        stage.report.fault(what)
        lease = stage.lease
        match what.partition(" ")[0]:
            case "process":
                if mark := self._aim(what):
                    send(mark.pid, signal.SIGKILL)
            case "worker":
                mark = self._aim(what)
                for worker in bed.fleet.workers:
                    if mark and mark.pid in (family := worker.family()):
                        worker.dismiss(signal.SIGKILL)
                        for pid in family[1:]:
                            send(pid, signal.SIGKILL)
            case "drain":
                stage.rng.choice(bed.fleet.workers).dismiss(signal.SIGTERM)
            case "server":
                stage.cluster.kill()
                time.sleep(1.5 * lease)
                stage.cluster.start()
            case "table":
                with psycopg.connect(bed.url) as connection:
                    connection.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
                    time.sleep(2 * lease)
            case _:
                raise ValueError(what)

    def _judge(self) -> None:
        report, bed = self._stage.report, self._bed
        fates, marks = bed.fates(), bed.ledger.marks
        report.jobs += len(self._jobs)
        report.at_least("jobs", len(self._jobs), self._count)
        begun = {mark.job for mark in marks if mark.kind == START}
        report.note("  whose handler began", len(begun))
        ends = [(fates[j].state, fates[j].reason) for j in self._jobs if j in fates]
        report.note("  completed", sum(state == "completed" for state, _ in ends))
        report.note("  failed as lost", sum(reason == "lost" for _, reason in ends))
        report.none("handlers that began twice", judge.begun_twice(self._jobs, marks))
        report.none("jobs that have not ended", judge.unfinished(self._jobs, fates), timed=True)
        unbegun = {j for j in self._jobs if j not in begun and fates[j].state == "completed"}
        report.none("completed without having begun", unbegun)
        done = {mark.job for mark in marks if mark.kind == END}
        report.none(
            "completed without an end",
            [j for j in self._jobs if fates[j].state == "completed" and j not in done],
        )


def play(stage: Stage) -> None:
    """Run it once."""
    stage.report.part("on_loss")
    Careful(stage, _SHORT if stage.short else _FULL).run()


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("on_loss", __doc__, play, argv)
