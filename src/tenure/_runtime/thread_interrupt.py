"""Raise `Stopped` in a handler's thread, at a point where this can't leave a lock held.

An asynchronous exception can arrive between any two bytecode instructions. Inside `logging`,
`threading`, `queue` or a database driver, that may be right after a lock was acquired, before the
code that releases it. The lock would then stay held until the process exits. So we watch the
thread's stack and wait until it is in the handler's own code. Log calls and methods of the job's
handle also check whether to stop.
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
# Packages whose frames may hold a lock or use a connection. Tenure itself is listed by module.
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
# Runtime modules that may hold a lock: all except the executors.
_SERVICES = frozenset(
    f"tenure._runtime.{name}"
    for name in (
        "claimer", "counters", "dispatcher", "events", "heartbeat", "held_leases", "lease_board",
        "log_capture", "renewer", "settler", "suspects", "watchdog",
    )
)  # fmt: skip
# The callers of every handler: frames below them aren't the handler's.
_CALLERS = frozenset({"tenure._runtime.on_threads", "tenure._runtime.process_runner"})
# Modules that are safe while waiting, because the wait and its callers are inside a `try`.
_WAITING = {"threading": frozenset({"queue", "threading", "concurrent"})}
_JOINING = frozenset({"join", "_wait_for_tstate_lock"})
# psycopg waits for the server here, inside `with lock`. A pool closes such a connection.
_DRIVERS_WAITING = frozenset({"psycopg.waiting", "psycopg.connection", "psycopg._connection_base"})


def raise_into(thread: int) -> None:
    """Raise `Stopped` at the thread's next bytecode step. This can't interrupt C code."""
    _set_async_exc(thread, ctypes.py_object(Stopped))


def take_back(thread: int) -> None:
    """Withdraw an exception that hasn't arrived yet."""
    _set_async_exc(thread, ctypes.py_object())


def is_safe(frame: FrameType | None) -> bool:
    """Whether an exception in this frame leaves no library lock held."""
    if frame is None:
        return False
    allowed = _allowed_below(frame)
    if frame.f_globals.get("__name__") in (*_CALLERS, "contextlib"):
        # The thread is outside the handler, or between acquiring a resource and the code that
        # releases it.
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
    """Return the packages that are safe in a stack with this frame on top."""
    module = str(frame.f_globals.get("__name__"))
    if module in _WAITING and (_in_try_of_wait(frame) or frame.f_code.co_name in _JOINING):
        return _WAITING[module]
    if module in _DRIVERS_WAITING and frame.f_code.co_name.startswith("wait"):
        return frozenset({"psycopg", "sqlalchemy"})
    return frozenset()


def _in_try_of_wait(frame: FrameType) -> bool:
    """Whether this is `Condition.wait` inside its `try`, the only place where `gotit` is set."""
    return frame.f_code.co_name == "wait" and "gotit" in frame.f_locals


class Interrupt:
    """Raise `Stopped` in one handler's thread, once, as soon as that is safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._wanted = False
        self._raised = False

    def enter(self) -> None:
        with self._lock:
            self._thread = threading.get_ident()

    def leave(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None and self._raised:
                take_back(thread)

    def request(self) -> None:
        if not self._wanted:
            self._wanted = True
            _raiser.add(self)

    def attempt(self) -> bool:
        """Raise now if that is safe. Return whether this interrupt is done."""
        with self._lock:
            if self._thread is None or self._raised:
                return True
            # Check twice, because the thread may have moved during the first check. After the
            # second, this thread keeps the GIL unless the machine stalls it longer than the switch
            # interval.
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
        """Raise `Stopped` if requested. Called by log calls and by methods of the job's handle."""
        if not self._wanted or self._raised or threading.get_ident() != self._thread:
            return
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - its own stack
        while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in (
            "logging",
            "tenure",
        ):
            frame = frame.f_back
        if is_safe(frame):
            self.check_here()

    def check_here(self) -> None:
        """Raise here if requested, whatever the handler's stack holds."""
        with self._lock:
            if not self._wanted or self._raised or threading.get_ident() != self._thread:
                return
            self._raised = True
        raise Stopped


class _Raiser:
    """The thread that keeps trying to interrupt each handler until it succeeds."""

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
            # After a wait, this thread has just acquired the GIL, and keeps it.
            if wanted:
                time.sleep(_AGAIN)
            else:
                wanted.append(self._new.get())
            while not self._new.empty():
                wanted.append(self._new.get())
            # A handler that ends on its own is done too.
            with contextlib.suppress(Exception):
                wanted = [interrupt for interrupt in wanted if not interrupt.attempt()]


_raiser = _Raiser()
