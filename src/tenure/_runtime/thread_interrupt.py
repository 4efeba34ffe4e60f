"""Raising `Stopped` into a handler's thread, where that leaves nothing locked or half done.

An exception that is raised from outside arrives between any two steps of Python. Inside `logging`,
`threading`, `queue` or a driver that may be after a lock was taken and before the code that
releases it: the lock stays locked for the whole process. So the thread's stack is looked at first,
again and again until it is at a place of the handler's own. Log calls and calls of the job's handle
are such places by themselves.
"""

import contextlib
import ctypes
import sys
import threading
import time
from queue import SimpleQueue
from types import FrameType

from tenure.errors import Stopped

_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = [ctypes.c_ulong, ctypes.py_object]

_AGAIN = 0.01
# Whose frames mean that a lock may be held or a connection half way. By the first part of a
# module's name; of Tenure itself by two.
_LOCKING = frozenset(
    {
        "_frozen_importlib", "_frozen_importlib_external", "_weakrefset", "aiomysql", "asyncpg",
        "concurrent", "importlib", "kombu", "logging", "multiprocessing", "mysql", "oracledb",
        "psycopg", "psycopg2", "psycopg_pool", "pymongo", "pymysql", "queue", "redis", "sqlalchemy",
        "threading",
    }
)  # fmt: skip
_OURS = frozenset(
    {
        "_bulk_enqueue", "_clock", "_log", "_notifier_redis", "_rules", "_services", "_store",
        "app", "handle", "job",
    }
)  # fmt: skip
# What of the runtime may hold a lock: all but the ways to run a handler.
_SERVICES = frozenset(
    f"tenure._runtime.{name}"
    for name in (
        "claimer", "counters", "dispatcher", "events", "heartbeat", "held_leases", "lease_board",
        "log_capture", "renewer", "settler", "suspects", "watchdog",
    )
)  # fmt: skip
# Where every handler is called from: below it there is nothing of the handler's.
_CALLERS = frozenset({"tenure._runtime.on_threads", "tenure._runtime.process_runner"})
# Frames that may be on top though their module may not: what waits there has a `try` around it,
# and so have its callers in the same modules.
_WAITING = {"threading": frozenset({"queue", "threading", "concurrent"})}
_JOINING = frozenset({"join", "_wait_for_tstate_lock"})
# psycopg waits for its server here, inside `with lock`; a pool closes a connection that is left so.
_DRIVERS_WAITING = frozenset({"psycopg.waiting", "psycopg.connection", "psycopg._connection_base"})


def raise_into(thread: int) -> None:
    """Raise `Stopped` at the thread's next step of Python; code in C is not reached."""
    _set_async_exc(thread, ctypes.py_object(Stopped))


def take_back(thread: int) -> None:
    """Take back what was raised into the thread and has not arrived."""
    _set_async_exc(thread, ctypes.py_object())


def is_safe(frame: FrameType | None) -> bool:
    """Whether an exception that arrives in this frame leaves no lock of a library locked."""
    if frame is None:
        return False
    allowed = _allowed_below(frame)
    if frame.f_globals.get("__name__") in (*_CALLERS, "contextlib"):
        # Not in the handler yet, or no more; or between a resource and who is to release it.
        return False
    at: FrameType | None = frame
    while at is not None:
        module = str(at.f_globals.get("__name__"))
        if module in _CALLERS:
            return True
        first, _, rest = module.partition(".")
        if first == "tenure":
            if rest.partition(".")[0] in _OURS or module in _SERVICES:
                return False
        elif first in _LOCKING and first not in allowed:
            return False
        at = at.f_back
    return True


def _allowed_below(frame: FrameType) -> frozenset[str]:
    """The packages whose frames do no harm in a stack with this one on top."""
    module = str(frame.f_globals.get("__name__"))
    if module in _WAITING and (_in_try_of_wait(frame) or frame.f_code.co_name in _JOINING):
        return _WAITING[module]
    if module in _DRIVERS_WAITING and frame.f_code.co_name.startswith("wait"):
        return frozenset({"psycopg", "sqlalchemy"})
    return frozenset()


def _in_try_of_wait(frame: FrameType) -> bool:
    """Whether this is `Condition.wait`, past the point from which its lock is taken again in any
    case: before it the function has no local variable of that name."""
    return frame.f_code.co_name == "wait" and "gotit" in frame.f_locals


class Interrupt:
    """Raises `Stopped` into the thread of one handler, once, as soon as that is safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._wanted = False
        self._raised = False

    def enter(self) -> None:
        """From here on this thread can be raised into."""
        with self._lock:
            self._thread = threading.get_ident()

    def leave(self) -> None:
        """From here on it cannot: what was raised and has not arrived is taken back."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None and self._raised:
                take_back(thread)

    def request(self) -> None:
        """Have it raised. From any thread; does not wait."""
        if not self._wanted:
            self._wanted = True
            _raiser.add(self)

    def attempt(self) -> bool:
        """Raise now if that is safe; answers whether there is nothing more to do."""
        with self._lock:
            if self._thread is None or self._raised:
                return True
            # Two looks: while the first was judged, the thread may have gone on. From the second
            # on this thread keeps the GIL, unless the machine itself holds it up for longer than
            # the switch interval.
            frame = sys._current_frames().get(self._thread)  # noqa: SLF001 - the only way to see it
            at = None if frame is None else frame.f_lasti
            if not is_safe(frame):
                return False
            again = sys._current_frames().get(self._thread)  # noqa: SLF001
            if again is not frame or again is None or again.f_lasti != at:
                return False
            self._raised = True
            raise_into(self._thread)
            return True

    def check(self) -> None:
        """Raise here, if that is wanted and this is the handler's thread: from a log call, or from
        a call of the job's handle."""
        if not self._wanted or self._raised or threading.get_ident() != self._thread:
            return
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - its own stack
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in (
            "logging",
            "tenure",
        ):
            frame = frame.f_back
        if is_safe(frame):
            with self._lock:
                self._raised = True
            raise Stopped


class _Raiser:
    """The thread that looks at handlers which are to stop, until each has been raised into."""

    def __init__(self) -> None:
        self._new: SimpleQueue[Interrupt] = SimpleQueue()
        self._started = False
        self._lock = threading.Lock()

    def add(self, interrupt: Interrupt) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="tenure-stop", daemon=True).start()
        self._new.put(interrupt)

    def _run(self) -> None:
        wanted: list[Interrupt] = []
        while True:
            # Each time it comes back from waiting it has just been given the GIL, and keeps it.
            if wanted:
                time.sleep(_AGAIN)
            else:
                wanted.append(self._new.get())
            while not self._new.empty():
                wanted.append(self._new.get())
            # One that ends by itself, or whose process ends, is done, too.
            with contextlib.suppress(Exception):
                wanted = [interrupt for interrupt in wanted if not interrupt.attempt()]


_raiser = _Raiser()
