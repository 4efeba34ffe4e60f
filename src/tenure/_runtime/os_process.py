"""Process groups and memory, as the kernel reports them."""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def groups(session: int) -> set[int]:
    group_ids = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, in parentheses: state, parent, group, session.
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                group_ids.add(int(fields[2]))
    return group_ids


def kill(group: int) -> None:
    """Kill a whole process group with one signal, so no member can fork between kills."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


# Try the container's count first: the machine's includes other containers.
_COUNTS = Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat")


def out_of_memory_kills() -> int:
    """Return how many processes the out-of-memory killer has killed, or 0 if unknown."""
    for path in _COUNTS:
        with suppress(OSError, ValueError):
            for line in path.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def resident(pid: int) -> int:
    """Return a process's resident memory in bytes, or 0 if the process is gone."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """Limit this process's private memory to `most` bytes inside the block.

    RLIMIT_DATA limits private writable memory. When the limit is reached, the kernel refuses to
    allocate more, and the handler gets a MemoryError. RLIMIT_AS would also count address space that
    libraries merely reserve, often gigabytes. If we monitored resident memory instead, we'd have to
    kill the process, and might be too late if its memory grows quickly.
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
