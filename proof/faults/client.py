"""`python -m proof.faults.client HISTORY SEED FIRST END RATE KINDS`: a program that enqueues jobs,
cancels a few and looks at others, and writes down what it saw.

Labels go from FIRST to END; for KINDS see `workload.shares`. Jobs with a key are asked for until
they are acknowledged; of others, what was not answered stays unknown.
"""

from __future__ import annotations

import contextlib
import sys
import time
from random import Random
from typing import TYPE_CHECKING

from proof.faults import jobs
from proof.faults.history import ANSWERED, CANCELLING, GAVE_UP, REQUESTED, UNKNOWN, Pen, now
from proof.faults.workload import make, shares
from tenure._model.audit import By
from tenure._model.results import RetryStatus
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Sequence

_BATCHES = (1, 10, 100, 500)
_SMALL_BATCHES = (1, 5, 10)
_SHARE_KEYED = 0.3
_SHARE_LOOKED_AT = 0.5
_SHARE_REPEATED = 0.5
_SHARE_CANCELLED = 0.5
_PAUSE = 0.1
_REVIVE_WITHIN = 15.0
# Far longer than any fault lasts; a client that cannot get through by then has found a defect.
_GIVE_UP_AFTER = 120.0
_BY = By("proof", reason="to see what comes of it")
_CANCELLED = {"cancelled": "ended", "requested": "requested", "not_live": "nothing"}


class Client:
    """One program's life."""

    def __init__(self, pen: Pen, rng: Random, kinds: str) -> None:
        self._pen = pen
        self._rng = rng
        self._kinds = shares(kinds)
        self._chosen = kinds not in {"usual", "rare"}
        # Jobs that fail for good, to be given a new life.
        self._fallen: list[int] = []

    def run(self, first: int, end: int, rate: float) -> None:
        """Ask for all of them, no faster than the rate."""
        began_at = now()
        label = first
        while label < end:
            sizes = _SMALL_BATCHES if self._chosen else _BATCHES
            count = min(self._rng.choice(sizes), int(rate), end - label)
            ids = self._enqueue(label, count, keyed=self._rng.random() < _SHARE_KEYED)
            label += count
            if "fall" in self._kinds:
                self._revive(ids)
            elif ids and (self._chosen or self._rng.random() < _SHARE_LOOKED_AT):
                if self._chosen:
                    # Long enough for some to be running.
                    time.sleep(self._rng.uniform(0, 0.2))
                self._look(ids)
            ahead = (label - first) / rate - (now() - began_at)
            if ahead > 0:
                time.sleep(ahead)
        self._revive_rest()

    def _enqueue(self, first: int, count: int, *, keyed: bool) -> Sequence[int]:
        calls = [
            make(self._rng, label, keyed=keyed, kinds=self._kinds)
            for label in range(first, first + count)
        ]
        # As one does whose own caller has hung up.
        again = keyed and self._chosen and self._rng.random() < _SHARE_REPEATED
        began_at = now()
        while now() < began_at + _GIVE_UP_AFTER:
            since = now()
            self._pen.write(REQUESTED, f"{since:.6f}", "-", count, "-", first)
            try:
                ids = [handle.id for handle in jobs.app.enqueue_many(calls)]
            except TenureError as error:
                self._say(UNKNOWN, since, count, type(error).__name__, first)
                time.sleep(_PAUSE)
                if not keyed:
                    return ()
                continue
            self._say(ANSWERED, since, count, ",".join(map(str, ids)), first)
            if not again:
                return ids
            again = False
        self._say(GAVE_UP, began_at, count, "-", first)
        return ()

    def _say(self, what: str, since: float, count: int, answer: str, first: int) -> None:
        self._pen.write(what, f"{since:.6f}", f"{now():.6f}", count, answer, first)

    def _revive(self, ids: Sequence[int]) -> None:
        """Bring back what has fallen; what has not yet is left for the next time."""
        self._fallen += ids
        with contextlib.suppress(TenureError):
            answers = jobs.app.admin.jobs.retry(self._fallen, _BY)
            waiting = zip(self._fallen, answers, strict=True)
            self._fallen = [
                job for job, answer in waiting if answer.answer is RetryStatus.NOT_FAILED
            ]

    def _revive_rest(self) -> None:
        """What fell last; one that was lost before it could fall is not waited for."""
        give_up_at = now() + _REVIVE_WITHIN
        while self._fallen and now() < give_up_at:
            time.sleep(1.0)
            self._revive(())

    def _look(self, ids: Sequence[int]) -> None:
        job_id = self._rng.choice(ids)
        since = now()
        if self._rng.random() < _SHARE_CANCELLED:
            self._pen.instant(CANCELLING, job_id, 0)
            try:
                [answer] = jobs.app.admin.jobs.cancel([job_id], _BY)
            except TenureError:
                self._pen.span("cancel", since, job_id, 0, UNKNOWN)
            else:
                self._pen.span("cancel", since, job_id, 0, _CANCELLED[answer])
            return
        with contextlib.suppress(TenureError):
            if row := jobs.app.admin.jobs.get(job_id):
                self._pen.span("seen", since, job_id, row.token, row.state)


def main(argv: list[str]) -> None:
    """Do it; the exit code is 0 once all of them were asked for."""
    history, seed, first, end, rate, kinds = argv
    rng = Random(f"{seed} {first}")  # noqa: S311 - to be repeated
    client = Client(Pen(history), rng, kinds)
    client.run(int(first), int(end), float(rate))


if __name__ == "__main__":
    main(sys.argv[1:])
