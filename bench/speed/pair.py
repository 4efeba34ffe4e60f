"""Two workers of their own parents on one place: one lives on, the other is killed at will."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.speed.contender import tenure
from bench.speed.counting import now
from bench.speed.meters import family
from support.processes import children, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.speed.contender import Place, Running

SLOTS = 100
_PAGE = os.sysconf("SC_PAGE_SIZE")


@contextmanager
def pair(place: Place) -> Iterator[Pair]:
    """Both run as long as the block lasts."""
    with ExitStack() as stack:
        yield Pair(place, stack)


class Pair:
    """Two workers; the one that was killed is started again at once."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self._place = place
        self._contender = tenure("stamp", BENCH_SLOTS=str(SLOTS))
        self._stack = stack
        self._lives, self._dies = self._start(), self._start()

    @property
    def survivor(self) -> int:
        """The process id of the parent that lives on."""
        return self._lives.pid

    def kill(self) -> float:
        """End a parent and all below it at once, without a word, and start another; answers with
        when it was."""
        for pid in family(self._dies.pid):
            send(pid, signal.SIGKILL)
        at = now()
        self._dies.process.wait()
        self._dies = self._start()
        return at

    def memory(self) -> int:
        """Bytes of memory that the survivor's child holds."""
        self._lives.check()
        pids = children(self._lives.pid)
        return sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in pids) * _PAGE

    def _start(self) -> Running:
        return self._stack.enter_context(self._contender.work(self._place))
