"""What the processes of a worker share, and the process of a handler that has its own.

A copy of a child that a handler has forked must end before it touches the child's connections.
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
# For groups in a session that is being ended; who makes new ones all the time is not chased on.
_LOOKS = 10
_ORPHANS_AT_ONCE = 1000
_apart = False


def die_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent is gone, however that came.

    A child without its parent would run on unwatched. One whose parent was gone before this
    was asked for ends here.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def set_close_on_exec(*fds: int | None) -> None:
    """Pass these descriptors on to no program that a handler starts: it might outlive us, and keep
    the channel open."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, False)


def mark_as_handler_process() -> None:
    """Note that this process is a handler's own."""
    global _apart  # noqa: PLW0603 - a process is one thing or the other
    _apart = True


def is_handler_process() -> bool:
    """Whether this process is a handler's own: it is killed as soon as nobody needs it, so that
    what must get away has to go with each job."""
    return _apart


def kill_session(leader: int) -> None:
    """End a session: its leader's group at once, then what is in groups of its own (processes of
    handlers, and the programs that they started). A group is ended as one, so that none of it can
    fork meanwhile; groups that were made meanwhile are looked for again."""
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
    """Reap what has ended and was left to this process by others, which happens to process 1 of a
    container; answers with how many. The processes in `own` are left to who waits for them."""
    reaped = 0
    for _ in range(_ORPHANS_AT_ONCE):
        try:
            # Looked at first: asyncio would miss the end of a process of its own.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in own:
                return reaped
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            return reaped
        reaped += 1
    return reaped


def end_copies(loop: asyncio.AbstractEventLoop) -> None:
    """Have a copy of this process end as soon as it comes back to the event loop, if it was forked
    there. What it does before that, such as to start another program, is the handler's business.
    """
    os.register_at_fork(after_in_child=partial(_end_at_loop, loop, threading.get_ident()))


def _end_at_loop(loop: asyncio.AbstractEventLoop, thread: int) -> None:
    if threading.get_ident() != thread:
        return
    # What would be called before the loop waits again; memory is the copy's own by now.
    for handle in getattr(loop, "_ready", ()):
        handle.cancel()
    selector = getattr(loop, "_selector", None)
    if selector is not None:
        selector.select = _end


def _end(_: float | None = None) -> NoReturn:
    os._exit(0)


def main() -> None:
    """Load the app and run what the child sends."""
    target, log_level, log_format, parent, fd = sys.argv[1:]
    die_with_parent(int(parent))
    set_close_on_exec(int(fd))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_logging(log_level, log_format)
    mark_as_handler_process()
    app = load(target)
    with log_capture.capture_logs():
        HandlerRunner(app.tasks, app.engine, app.hooks, socket.socket(fileno=int(fd))).run()
