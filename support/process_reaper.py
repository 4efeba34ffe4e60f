"""Runs a program and, when told to end, ends all that came of it, also what has moved away.

Patroni lets its server continue without it, as it should in production; here nothing may stay
behind. Run by the system's Python as a text (`python3 -c TEXT COMMAND …`), because the user that
runs it may not be able to read this file; so it stands alone. A SIGTERM is the word to end.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def _offspring(ancestor: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found = [ancestor]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def _reap() -> bool:
    """Reap the processes that have ended; return whether any is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end(*_: object) -> None:
    # Orphans become ours, so that no process escapes between two looks.
    while _reap():
        for pid in _offspring(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
    os._exit(0)


def main(command: list[str]) -> None:
    """Start the program and wait for the end; what it leaves behind is waited for, too."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _end)
    subprocess.Popen(command)
    while _reap():
        time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1:])
