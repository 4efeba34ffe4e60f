"""When an exception is raised into a handler's thread, and when it must wait."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tenure._runtime import on_threads
from tenure._runtime.thread_interrupt import Interrupt
from tenure.errors import Stopped
from tests.timing import median

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT = 0.4


class Slow(logging.Handler):
    """A handler of the user's that takes its time."""

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        """Take it."""
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            pass


_slow = logging.getLogger("slow")
_slow.propagate = False
_slow.addHandler(Slow())
_condition = threading.Condition()


def log_slowly() -> None:
    _slow.error("once")


def spin() -> None:
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        pass


def wait_for_an_event() -> None:
    threading.Event().wait(WAIT)


def wait_for_a_queue() -> None:
    with pytest.raises(queue.Empty):
        queue.Queue[int]().get(timeout=WAIT)


class Stoppable:
    """A thread that does something and can be stopped; its frames begin as a handler's do."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.interrupt = Interrupt()
        self.stopped = False
        self.took = 0.0
        self._act = act
        # As seen from `threads`, below which nothing is looked at.
        scope: dict[str, Any] = {"__name__": on_threads.__name__, "run": self._run}
        exec("def work():\n    run()\n", scope)  # noqa: S102
        self._thread = threading.Thread(target=scope["work"], daemon=True)
        self._entered = threading.Event()

    def _run(self) -> None:
        began = time.monotonic()
        self.interrupt.enter()
        self._entered.set()
        try:
            self._act()
            time.sleep(0.1)
        except Stopped:
            self.stopped = True
            self.took = time.monotonic() - began
        finally:
            self.interrupt.leave()

    def stop(self) -> None:
        self._thread.start()
        self._entered.wait()
        time.sleep(0.1)
        self.interrupt.request()
        self._thread.join(10)


def test_inside_logging_it_waits_until_the_call_has_returned() -> None:
    running = Stoppable(log_slowly)
    running.stop()
    assert running.stopped
    assert running.took >= WAIT
    [handler] = [each for each in _slow.handlers if isinstance(each, Slow)]
    assert handler.lock is not None
    assert handler.lock.acquire(blocking=False), "the handler's lock was left locked"
    handler.lock.release()


def _stopped_after(act: Callable[[], object]) -> float:
    """Stop a thread that does this; return how long it ran."""
    running = Stoppable(act)
    running.stop()
    assert running.stopped
    return running.took


@pytest.mark.timing
def test_in_the_handler_s_own_code_it_comes_at_once() -> None:
    assert median(lambda: _stopped_after(spin)) < WAIT


@pytest.mark.timing
@pytest.mark.parametrize("act", [wait_for_an_event, wait_for_a_queue])
def test_a_wait_that_ends_by_itself_is_followed_by_it(act: Callable[[], object]) -> None:
    """`Condition.wait` takes its lock again in any case: there it may arrive."""
    assert median(lambda: _stopped_after(act)) < WAIT + 0.09


def test_check_raises_once_and_only_in_its_thread() -> None:
    raised: list[int] = []

    def act() -> None:
        with _condition:
            interrupt.check()
            for _ in range(100):
                try:
                    interrupt.check()
                    time.sleep(0.001)
                except Stopped:
                    raised.append(1)

    running = Stoppable(act)
    interrupt = running.interrupt
    running.stop()
    interrupt.check()
    assert len(raised) <= 1
    assert _condition.acquire(blocking=False)
    _condition.release()
