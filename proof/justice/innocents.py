"""`just prove innocents [--short] [--seed N] [--lease S]`: neighbors of crashes.

Pills on the loop, in threads and in processes take their process down, next to innocents of all
three kinds: ordinary ones, ones with a single attempt, ones on their last.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from proof.crash.fleet import Shape
from proof.justice import judge
from proof.justice.cast import Cast
from proof.justice.harness import job
from proof.justice.stage import prove

if TYPE_CHECKING:
    from proof.justice.harness import Bed
    from proof.justice.stage import Stage

PILLS = ("crash_on_loop", "crash_in_thread", "crash_in_process")
WAYS = ("exit", "segfault", "kill", "abort")
LOSSES = 3
# Each pill makes about four crashes: one of a shared process, three of its own.
_FULL = 2_000
_SHORT = 16
_BUSY = 7
# Few in processes of their own: starting one costs most of a second of a core.
_KINDS = ("nap", "doze", "nap", "doze", "toil")
_AT_ONCE = 2
_SLOTS = 24
_EACH_CRASH_WITHIN = 3.0


class Neighbors:
    """Innocents and pills in one bed, until there were enough crashes."""

    def __init__(self, stage: Stage, bed: Bed, crashes: int) -> None:
        self._stage = stage
        self._bed = bed
        self._crashes = crashes
        self._cast = Cast(bed)
        self._pills: dict[int, tuple[str, str]] = {}

    def run(self) -> None:
        """Keep innocents and pills running, let all end, and judge."""
        bed = self._bed
        combinations = [(task, way) for way in WAYS for task in PILLS]
        # Only the loop knows an instant after the return and before the end is settled.
        combinations += [("crash_on_loop", "late")] * len(PILLS)
        self._stage.rng.shuffle(combinations)
        give_up_at = time.monotonic() + 15 + _EACH_CRASH_WITHIN * self._crashes
        with bed:
            self._feed(0)
            bed.wait_started(self._cast.ids, 10)
            while time.monotonic() < give_up_at:
                bed.ledger.read()
                crashed = sum(judge.deaths(bed.ledger.marks).values())
                wanted = -(-(self._crashes - crashed) // (LOSSES + 1))
                live = {j for (j,) in bed.rows("SELECT id FROM tenure.job")}
                taken = sum(pill in live for pill in self._pills)
                if wanted <= 0 and taken == 0:
                    break
                self._feed(len(live) - taken)
                if taken < min(_AT_ONCE, wanted):
                    self._poison(*combinations[len(self._pills) % len(combinations)])
                time.sleep(0.1)
            bed.wait_ended(3 * self._stage.lease + 5)
        self._judge()

    def _feed(self, live: int) -> None:
        for _ in range(_BUSY - live):
            self._cast.add(1, self._stage.rng.uniform(1.0, 2.0), kinds=_KINDS)

    def _poison(self, task: str, way: str) -> None:
        after = self._stage.rng.uniform(0.1, 0.4)
        # The death of a process is never a failure of the handler: one attempt is enough.
        attempts = self._stage.rng.choice((1, 3))
        [pill] = self._bed.enqueue([job(task, max_attempts=attempts, way=way, after=after)])
        self._pills[pill] = (task, way)

    def _judge(self) -> None:
        bed, report = self._bed, self._stage.report
        fates, marks = bed.fates(), bed.ledger.marks
        strikes = judge.crashes(marks)
        report.jobs += len(self._cast.innocents) + len(self._pills)
        for _ in strikes:
            report.fault("a handler took its process down")
        report.at_least("crashes", len(strikes), self._crashes)
        self._stage.acquit(bed, self._cast.innocents, strikes)
        named = {p: f"{task} {way}" for p, (task, way) in self._pills.items()}
        ended = [p for p in self._pills if not judge.unfinished([p], fates)]
        report.none(
            "pills that did not end",
            [f"{one}, {named[int(one.split()[1][:-1])]}" for one in judge.unfinished(named, fates)],
            timed=True,
        )
        report.none("pills that ended otherwise than as poison", judge.not_poison(ended, fates))
        own = judge.own_deaths(marks, bed.parents)
        report.none(
            "pills not ended by exactly 3 deaths of their own process",
            judge.not_exactly(LOSSES, ended, *own),
        )
        report.none("workers that ended by themselves", bed.fleet.deserted)


def play(stage: Stage) -> None:
    """Run with one child, then with two."""
    crashes = (_SHORT if stage.short else _FULL) // 2
    for children in (1, 2):
        stage.report.part(f"{children} child{'ren' if children > 1 else ''}")
        bed = stage.bed(f"{children}", Shape(workers=1, processes=children, slots=_SLOTS))
        try:
            Neighbors(stage, bed, crashes).run()
        finally:
            bed.close()


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    return prove("innocents", __doc__, play, argv)
