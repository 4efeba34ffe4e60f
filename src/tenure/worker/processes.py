"""What the processes of a worker have in common: they die together."""

import ctypes
import os
import signal

from tenure._executors import groups

_PR_SET_PDEATHSIG = 1
# For groups in a session that is being ended; who makes new ones all the time is not chased on.
_LOOKS = 10
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
