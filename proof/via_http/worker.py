"""A worker over HTTP, by `tenure.client`: the child of a parent, or a program that works when it is
told to."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from proof.crash.jobs import QUEUE
from proof.via_http.jobs import HANDLERS
from tenure.client import Client, work

# As proof.crash.program starts it.
PROGRAM = "from proof.via_http.worker import be_program; be_program()"
_GRACE = 4.0
# The server answers within this, or is asked again: well within a lease.
_PATIENCE = 2.0


def be_child() -> None:
    """Work until told to stop; what is not done then within the grace is left to its lease."""
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        _leave_within(_GRACE)

    signal.signal(signal.SIGTERM, end)
    _work(int(sys.argv[1]), sys.argv[2], stop)


def be_program() -> None:
    """Work between `begin` and `rest`, as the lines of stdin say, until there are no more."""
    count, slots = int(sys.argv[2]), int(sys.argv[3])
    stop, working = threading.Event(), list[threading.Thread]()
    while word := sys.stdin.readline():
        stop.set()
        for thread in working:
            thread.join()
        if word.strip() == "begin":
            stop = threading.Event()
            names = [f"program-{os.getpid()}-{number}" for number in range(count)]
            working = [threading.Thread(target=_work, args=(slots, n, stop)) for n in names]
            for thread in working:
                thread.start()
    stop.set()
    _leave_within(_GRACE)


def _work(slots: int, name: str, stop: threading.Event) -> None:
    with Client(os.environ["PROOF_SERVER"], os.environ["PROOF_TOKEN"], timeout=_PATIENCE) as client:
        work(client, HANDLERS, queues=[QUEUE], slots=slots, name=name, stop=stop)


def _leave_within(seconds: float) -> None:
    def leave() -> None:
        time.sleep(seconds)
        os._exit(0)

    threading.Thread(target=leave, daemon=True).start()
