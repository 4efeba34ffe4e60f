"""The thread that publishes wakeups for one process: whoever rings does not wait for Redis."""

import atexit
import os
import threading
from collections.abc import Collection
from time import monotonic

from tenure._bells.clients import client
from tenure._bells.urls import Place
from tenure._log import Log

log = Log("tenure")
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_LAST_WORDS = 0.5
_BREATH = 0.005
# The first may be a connection that broke while it was idle; the next is made anew.
_TRIED_AT_ONCE = 2


class Ringer:
    """The thread that publishes, for one process. It has at most one word per queue to say, so
    that a Redis that is away fills no memory."""

    def __init__(self, place: Place, channel: str) -> None:
        self.pid = os.getpid()
        self._place = place
        self._channel = channel
        self._waiting: set[str] = set()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._idle = True
        self._failures = 0
        self._proven = False
        atexit.register(self.close)
        threading.Thread(target=self._run, name="tenure bell", daemon=True).start()

    def ring(self, queues: Collection[str]) -> None:
        """Have it said soon."""
        with self._changed:
            self._waiting.update(queues)
            self._changed.notify_all()

    def close(self) -> None:
        """Let the thread end; what is left to say is waited for only where Redis has answered."""
        atexit.unregister(self.close)
        until = monotonic() + _LAST_WORDS
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
            while self._proven and not self._failures and (self._waiting or not self._idle):
                if not self._changed.wait(max(until - monotonic(), 0)):
                    break

    def _run(self) -> None:
        redis = None
        while (queues := self._next()) is not None:
            try:
                redis = redis or client(self._place)
                with redis.pipeline(transaction=False) as batch:
                    for queue in queues:
                        batch.publish(self._channel, queue)
                    batch.execute()
            except Exception as error:  # noqa: BLE001 - whatever it is, enqueues go on without
                self._failed(queues, error)
            else:
                self._published()
        if redis is not None:
            redis.close()

    def _next(self) -> set[str] | None:
        """What there is to say, once there is something; None when all is said at the end."""
        with self._changed:
            self._idle = True
            self._changed.notify_all()
            while not self._waiting:
                if self._closing.is_set():
                    return None
                self._changed.wait()
            queues, self._waiting = self._waiting, set()
            self._idle = False
            return queues

    def _failed(self, queues: set[str], error: Exception) -> None:
        """Say it later, ever more slowly."""
        with self._changed:
            self._failures += 1
            if not self._closing.is_set():
                self._waiting |= queues
        over = self._failures - _TRIED_AT_ONCE
        if over == 0:
            log.warning("bell: Redis does not answer: %s; workers poll meanwhile", error)
        if over >= 0:
            # Not woken by those who ring: there is nothing to do for them yet.
            self._closing.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(over, 10)))

    def _published(self) -> None:
        if self._failures >= _TRIED_AT_ONCE:
            log.info("bell: Redis answers again")
        self._failures = 0
        self._proven = True
        # What is rung meanwhile is said in one breath: a burst costs its program little.
        self._closing.wait(_BREATH)
