"""The parent of workers over HTTP: it replaces children that died, and they end when it does."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

from support.processes import die_with_parent

# As proof.crash.fleet starts it.
WORK = "from proof.via_http.parent import be; be()"
_CHILD = "from proof.via_http.worker import be_child; be_child()"
_LOOK = 0.05


def be() -> None:
    """Keep this many children until SIGTERM; they end with this process."""
    slots, processes, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def child(number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - itself
            [sys.executable, "-c", _CHILD, slots, f"{name}-{number}"],
            preexec_fn=die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - it takes no lock
        )

    children = [child(number) for number in range(processes)]
    while not stop.wait(_LOOK):
        for number, one in enumerate(children):
            if one.poll() is not None:
                children[number] = child(number)
    for one in children:
        one.terminate()
    for one in children:
        one.wait()
