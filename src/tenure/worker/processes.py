"""Functions shared by all of a worker's processes, and the main function of handler processes.

A forked copy of a child must exit before it can touch the child's connections.
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection
from functools import partial
from typing import NoReturn

from tenure._runtime import log_capture, os_process
from tenure._runtime.process_runner import HandlerRunner
from tenure.worker.loader import load
from tenure.worker.log_format import configure_logging

_PR_SET_PDEATHSIG = 1
# How many times to kill a session's new groups before giving up on processes that keep forking.
_LOOKS = 10
_ORPHANS_AT_ONCE = 1000
_is_handler_process = False


def die_with_parent(parent: int, *, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent dies (default: SIGKILL).

    Exit if the parent is already gone.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def set_close_on_exec(*fds: int | None) -> None:
    """Hide descriptors from programs a handler starts, which could keep the channel open."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, False)


def mark_as_handler_process() -> None:
    global _is_handler_process  # noqa: PLW0603 - a process is one thing or the other
    _is_handler_process = True


def is_handler_process() -> bool:
    # An idle handler process gets killed, so buffered data must be flushed after each job.
    return _is_handler_process


def kill_session(leader: int) -> None:
    """Kill a session group by group, repeatedly, because members can fork in between."""
    ended: set[int] = set()
    groups = {leader}
    for _ in range(_LOOKS):
        for group in groups:
            os_process.kill(group)
        ended |= groups
        groups = os_process.groups(leader) - ended
        if not groups:
            return


def reap_orphans(own: Collection[int]) -> int:
    """Reap orphans as a container's process 1, except `own` processes. Return their number."""
    reaped = 0
    for _ in range(_ORPHANS_AT_ONCE):
        try:
            # Check first: asyncio would miss its own process's exit.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in own:
                return reaped
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            return reaped
        reaped += 1
    return reaped


def end_copies(loop: asyncio.AbstractEventLoop) -> None:
    """Make forked copies of this process exit once they return to the event loop."""
    os.register_at_fork(after_in_child=partial(_end_at_loop, loop, threading.get_ident()))


def _end_at_loop(loop: asyncio.AbstractEventLoop, thread: int) -> None:
    if threading.get_ident() != thread:
        return
    # Cancel pending callbacks. This only affects the copy's memory.
    for handle in getattr(loop, "_ready", ()):
        handle.cancel()
    selector = getattr(loop, "_selector", None)
    if selector is not None:
        selector.select = _end


def _end(_: float | None = None) -> NoReturn:
    os._exit(0)


def main() -> None:
    target, log_level, log_format, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    set_close_on_exec(int(fd))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_logging(log_level, log_format)
    mark_as_handler_process()
    app = load(target)
    with log_capture.capture_logs():
        HandlerRunner(app.tasks, app.engine, app.hooks, socket.socket(fileno=int(fd))).run()
