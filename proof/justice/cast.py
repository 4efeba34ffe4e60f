"""The innocents of a run: kinds and attempts in turn, so that every mix has all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proof.justice.harness import job
from proof.justice.judge import Innocent

if TYPE_CHECKING:
    from proof.justice.harness import Bed
    from tenure._model.job import NewJob

# On the event loop, in a thread, in a process of its own.
KINDS = ("nap", "doze", "toil")
LAST = 3


@dataclass
class Cast:
    """Enqueues innocents and remembers them."""

    bed: Bed
    innocents: list[Innocent] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        """Their jobs."""
        return [innocent.job for innocent in self.innocents]

    def add(
        self,
        count: int,
        seconds: float,
        *,
        brief: float | None = None,
        kinds: tuple[str, ...] = KINDS,
        attempts: int | None = None,
    ) -> list[int]:
        """Enqueue some. One that is interrupted takes `brief` seconds in its next running period.
        A third has one attempt, a third is on its last of three, unless `attempts` is given."""
        first = len(self.innocents)
        made = [_make(kinds, first + n, seconds, brief, attempts) for n in range(count)]
        ids = self.bed.enqueue([new for new, _ in made])
        again = seconds if brief is None else brief
        self.innocents += [
            Innocent(one, again, fails) for one, (_, fails) in zip(ids, made, strict=True)
        ]
        return ids


def _make(
    kinds: tuple[str, ...], number: int, seconds: float, brief: float | None, attempts: int | None
) -> tuple[NewJob, int]:
    kind = kinds[number % len(kinds)]
    share = (number // len(kinds)) % 3
    fails = LAST - 1 if share == 1 and attempts is None else 0
    limit = attempts if attempts is not None else (1, LAST, None)[share]
    return job(kind, max_attempts=limit, seconds=seconds, fails=fails, brief=brief), fails
