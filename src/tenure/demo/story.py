"""What befalls the shop, second by second: a worker is killed, the scheduler goes away and comes
back, people retry and discard and cancel."""

import heapq
import time
from collections.abc import Callable
from itertools import count

from tenure.demo import operating
from tenure.demo.processes import Processes

TARGET = "tenure.demo.shop:app"
_LOOK = 0.2
# Seconds after the start. The victim is killed once it runs something that can be missed.
_KILLED_AT = 3.0
_REPLACED_AFTER = 4.0
_SCHEDULER_AT = 8.0
_SCHEDULER_AWAY = 12.0
_MINUTE = 60.0


class Story:
    """The deeds that are to come, each at its second. `say` is told what happens."""

    def __init__(self, processes: Processes, say: Callable[[str], None]) -> None:
        self._processes = processes
        self._say = say
        self._deeds: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._began = 0.0

    def work(self, name: str) -> None:
        """Start a worker. Schedules are left to the scheduler, whose absence can then be seen."""
        options = ("--concurrency", "6", "--grace", "2", "--no-schedules", "--name", name)
        self._processes.start(name, "worker", TARGET, *options)

    def run(self, seconds: float | None) -> None:
        """Let it happen, for so long or until interrupted."""
        self._began = time.monotonic()
        self._at(_KILLED_AT, self._kill)
        self._at(_SCHEDULER_AT, self._start_scheduler)
        self._at(15, self._retry)
        self._at(25, operating.cancel_import)
        self._at(40, self._discard)
        while seconds is None or self._now() < seconds:
            while self._deeds and self._deeds[0][0] <= self._now():
                heapq.heappop(self._deeds)[2]()
            self._processes.check()
            time.sleep(_LOOK)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _at(self, second: float, deed: Callable[[], None]) -> None:
        heapq.heappush(self._deeds, (second, next(self._order), deed))

    def _in(self, seconds: float, deed: Callable[[], None]) -> None:
        self._at(self._now() + seconds, deed)

    def _kill(self) -> None:
        victim = operating.importer()
        if victim is None:
            self._in(_LOOK, self._kill)
            return
        self._processes.kill(victim)
        self._say(f"{victim} was killed; its leases run out, and others go on with its jobs")
        self._in(_REPLACED_AFTER, self._replace)

    def _replace(self) -> None:
        self.work("worker-3")
        self._say("worker-3 was started in its place")

    def _start_scheduler(self) -> None:
        self._processes.start("scheduler", "scheduler", TARGET)
        self._say("the scheduler was started; what was due without it is missed or late")
        self._in(_MINUTE, self._stop_scheduler)

    def _stop_scheduler(self) -> None:
        self._processes.stop("scheduler")
        self._say("the scheduler was stopped, for a while")
        self._in(_SCHEDULER_AWAY, self._start_scheduler)

    def _retry(self) -> None:
        if operating.retry_taxes():
            self._say("ana retries dead letters, one a second; some will fail again")
        self._in(_MINUTE, self._retry)

    def _discard(self) -> None:
        operating.discard_declined()
        self._in(_MINUTE, self._discard)
