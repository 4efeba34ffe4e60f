"""What the processes of a worker have in common: they die together."""

import ctypes
import os
import signal
from collections.abc import Collection

from tenure._executors import groups

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


def keep(*fds: int | None) -> None:
    """Pass these descriptors on to no program that a handler starts: it might outlive us, and keep
    the channel open."""
    for fd in fds:
        if fd is not None:
            os.set_inheritable(fd, False)


def be_apart() -> None:
    """Note that this process is a handler's own."""
    global _apart  # noqa: PLW0603 - a process is one thing or the other
    _apart = True


def is_apart() -> bool:
    """Whether this process is a handler's own: it is killed as soon as nobody needs it, so that
    what must get away has to go with each job."""
    return _apart


def kill_session(leader: int) -> None:
    """End a session: its leader's group at once, then what is in groups of its own (processes of
    handlers, and the programs that they started). A group is ended as one, so that none of it can
    fork meanwhile; groups that were made meanwhile are looked for again."""
    ended: set[int] = set()
    found = {leader}
    for _ in range(_LOOKS):
        for group in found:
            groups.kill(group)
        ended |= found
        found = groups.groups(leader) - ended
        if not found:
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
