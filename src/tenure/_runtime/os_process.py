"""Process groups and memory, as the kernel reports them.

Memory: how much a process takes or may take, and whether the kernel has ended processes for want
of it, which a SIGKILL alone does not say.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def groups(session: int) -> set[int]:
    """The groups that there are in a session."""
    group_ids = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, in parentheses: state, parent, group, session.
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                group_ids.add(int(fields[2]))
    return group_ids


def kill(group: int) -> None:
    """End a group as one, so that none of it can fork meanwhile. What is another user's stays."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


# The container's own count first: the machine's includes kills in other containers.
_COUNTS = Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat")


def out_of_memory_kills() -> int:
    """How many processes the out-of-memory killer has ended so far; 0 where that is not known."""
    for path in _COUNTS:
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def resident(pid: int) -> int:
    """How many bytes of memory a process takes; 0 if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """Let this process have no more than so many bytes of its own as long as this lasts.

    By RLIMIT_DATA, which counts what is private and writable: the kernel refuses more, and Python
    raises MemoryError in the handler that asked. RLIMIT_AS would count address space that is only
    reserved, which many libraries do by the gigabyte; a watch over resident memory would have to
    kill, and would come too late for what grows fast.
    """
    if most is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    within = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (within, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
