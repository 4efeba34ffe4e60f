"""The bed with a server in the middle, and workers that reach it by `tenure.client` alone."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import cache
from typing import TYPE_CHECKING

from proof.justice.harness import QUEUE, Bed
from proof.justice.jobs import SCALED, STEP
from proof.justice.ledger import BEAT, DYING, END, FAILED, START, Pen
from proof.via_http.server import Server
from tenure import Tenure
from tenure.admin import By
from tenure.client import Client, work
from tenure.server.serve import serve
from tenure.worker.observability import open_socket

if TYPE_CHECKING:
    from pathlib import Path

    from proof.crash.fleet import Shape
    from tenure.client import Handler, Work

WORK = "from proof.justice.over_http import be_worker; be_worker()"
_SERVE = "from proof.justice.over_http import be_server; be_server()"
_PATIENCE = 2.0


class HttpBed(Bed):
    """One database, one server, and workers over HTTP."""

    def __init__(self, url: str, directory: Path, shape: Shape, lease: float) -> None:
        app = Tenure(url)
        token = app.admin.tokens.create("proof", By("proof"), scopes=["work"])
        app.close()
        self._server = Server(directory / "server.log", program=_SERVE)
        beside = {"PROOF_SERVER": self._server.url, "PROOF_TOKEN": token.secret}
        super().__init__(url, directory, shape, lease, work=WORK, beside=beside)

    def start(self) -> None:
        """Start the server first."""
        self._server.start(self.environment)
        super().start()

    def end(self) -> None:
        """End the workers, then the server."""
        super().end()
        self._server.end()


def be_server() -> None:
    """Be the server, with the lease scaled."""
    serve(Tenure(defaults=SCALED), on=open_socket("127.0.0.1", int(sys.argv[1])), name="server")


def be_worker() -> None:
    """Be a worker, until SIGTERM; it ends when its handlers have."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Client(os.environ["PROOF_SERVER"], os.environ["PROOF_TOKEN"], timeout=_PATIENCE) as client:
        work(client, HANDLERS, queues=[QUEUE], slots=int(sys.argv[1]), name=sys.argv[3], stop=stop)


@cache
def _pen() -> Pen:
    return Pen(os.environ["PROOF_LEDGER"])


def _mark(kind: str, job: Work) -> None:
    _pen().write(kind, int(job.id), int(job.fence), job.attempt)


def nap(job: Work) -> None:
    """An innocent; one that was interrupted takes less time, if that is given."""
    _mark(START, job)
    fails, brief = job.args.get("fails", 0), job.args.get("brief")
    if job.attempt <= fails:
        _mark(FAILED, job)
        raise RuntimeError(f"attempt {job.attempt} of {fails} that fail")
    interrupted = int(job.fence) % 2**40 > fails
    seconds = brief if brief is not None and interrupted else job.args["seconds"]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(STEP)
        _mark(BEAT, job)
    _mark(END, job)


def crash_worker(job: Work) -> None:
    """A pill: here every process is a whole worker."""
    _mark(START, job)
    time.sleep(job.args["after"])
    _mark(DYING, job)
    os.kill(os.getpid(), signal.SIGKILL)


HANDLERS: dict[str, Handler] = {"nap": nap, "doze": nap, "crash_worker": crash_worker}
