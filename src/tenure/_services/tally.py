"""What one process that runs work has counted since it began, and who writes it down."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ParamSpec

from tenure._model.lease import Rescued, Settled, Settling
from tenure._model.outcome import Ended, Loss
from tenure._services.base import Service
from tenure._services.holdings import Held
from tenure._services.sheet import Sheet

_PAUSE = timedelta(seconds=1)
# So many tasks are counted by their names, the first that came; the others together.
_MOST_TASKS = 100
OTHERS = "(others)"
P = ParamSpec("P")


class Tally:
    """Counts what begins and ends here. From the thread that runs handlers, but for rescues, which
    the keeper's does too; a number may be read from any."""

    def __init__(self) -> None:
        self.started: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.lost = 0
        self.rescued: int = 0
        self._tasks: set[str] = set()

    def _name(self, task: str) -> str:
        if task not in self._tasks:
            if len(self._tasks) >= _MOST_TASKS:
                return OTHERS
            self._tasks.add(task)
        return task

    def start(self, held: Held) -> None:
        """A handler has begun."""
        self.started[self._name(held.job.task)] += 1

    def complete(self, held: Held) -> None:
        """A job was completed by its handler's own transaction, or by reaching its target."""
        self.ended[self._name(held.job.task), "completed"] += 1

    def settle(self, held: Held, ended: Ended, answer: Settled) -> None:
        """A running period has ended in the store, or had ended there before."""
        refused = answer.answer is Settling.REFUSED
        loss = ended.settlement.loss
        if refused or held.grip.lost or (loss is not None and loss is not Loss.BEGUN):
            self.lost += 1
        if not refused:
            ending = str(ended.settlement.ending)
            self.ended[self._name(held.job.task), ending] += 1

    def rescue(self, jobs: Sequence[Rescued]) -> None:
        """Leases that had run out were ended here."""
        self.rescued += len(jobs)

    def counts(self) -> dict[str, Any]:
        """All of it, for a sheet."""
        ended: dict[str, dict[str, int]] = {}
        for (task, ending), count in dict(self.ended).items():
            ended.setdefault(task, {})[ending] = count
        return {
            "started": dict(self.started),
            "ended": ended,
            "lost": self.lost,
            "rescued": self.rescued,
        }


def both(one: Callable[P, None], other: Callable[P, None]) -> Callable[P, None]:
    """Both are told."""

    def tell(*args: P.args, **kwargs: P.kwargs) -> None:
        one(*args, **kwargs)
        other(*args, **kwargs)

    return tell


class Tallier(Service):
    """Writes the counts of its process on its sheet. On the keeper's thread: a blocked loop is not
    to look like one that does nothing."""

    name = "tallier"

    def __init__(self, sheet: Sheet, counts: Callable[[], dict[str, Any]]) -> None:
        super().__init__(_PAUSE)
        self._sheet = sheet
        self._counts = counts

    async def tick(self) -> int:
        """Write them once."""
        self._sheet.write(self._counts())
        return 0

    async def close(self) -> None:
        """Write them for the last time."""
        self._sheet.write(self._counts())
