"""`just prove notices [--short]`: jobs fail for 3 causes. The worker that reports them is killed
between the dead letter and its delivery. Each dead letter is counted in a notice, once. Then a
receiver is broken: other jobs run as fast as before.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import TYPE_CHECKING

from proof.installation import installed
from proof.report import Report
from proof.second_try import tried
from support.binaries import ROOT
from tenure import Tenure
from tenure.admin import By as Operator
from tenure.admin import JobRequest, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proof.installation import Installation

app = Tenure()
FULL, SHORT = 10_000, 600
KILLS, SHORT_KILLS = 50, 4
ROUNDS, SHORT_ROUNDS = 10, 3
WINDOW, SHORT_WINDOW = 10.0, 4.0
CAUSES = ("refused", "unreadable", "overdrawn")
# One notice per cause in this time.
GROUP_FOR = 1.0
# A worker that is killed holds its notice for this long.
LEASE = 7.0
RATIO = 0.97
_BY = Operator("prover", source="proof")
_SECRET = "ops"  # noqa: S105 - its name
_TARGET = "proof.notices:app"
_QUEUES = "failing,fast,tenure.notices"
_FILE = ROOT / ".cache/proof/notices.json"
_LOOK = 0.1
_WITHIN = 180.0


class RefusedError(Exception):
    """A cause."""


class UnreadableError(Exception):
    """A cause."""


class OverdrawnError(Exception):
    """A cause."""


_ERRORS = dict(zip(CAUSES, (RefusedError, UnreadableError, OverdrawnError), strict=True))


@app.task(name="fail", queue="failing", max_attempts=1)
async def fail(cause: str) -> None:
    """Fail for one of the causes."""
    raise _ERRORS[cause](f"it is {cause}")


@app.task(name="quick", queue="fast")
async def quick() -> None:
    """Do nothing: its rate is measured."""


@dataclass
class Receiver:
    """Counts each notice once, by its webhook-id. While it is broken, it answers with 500."""

    is_broken: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    repeated: int = 0
    differing: int = 0
    kills_left: int = 0
    kill: threading.Event = field(default_factory=threading.Event)
    killed: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def receive(self, webhook_id: str, body: bytes) -> int:
        """Answer one request. Where a kill is due, the worker is killed before the answer."""
        if self.is_broken:
            return 500
        data = json.loads(body)["data"]
        with self.lock:
            is_known = webhook_id in self.counts
            if is_known:
                self.repeated += 1
                self.differing += self.counts[webhook_id] != data["count"]
            self.counts[webhook_id] = data["count"]
            self.groups[webhook_id] = data["group"]
            # Only at a notice's first delivery: a job whose worker dies three times is poison.
            is_hit = self.kills_left > 0 and not is_known and not self.kill.is_set()
            if is_hit:
                self.kills_left -= 1
                self.killed.clear()
                self.kill.set()
        if is_hit:
            self.killed.wait(30)
        return 204


@contextmanager
def receiving(receiver: Receiver) -> Iterator[str]:
    """Serve it. Yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = receiver.receive(self.headers["webhook-id"], body)
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                pass  # The worker was killed.

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Run:
    """The failures, their notices, and the rate of other jobs."""

    installation: Installation
    report: Report
    receiver: Receiver
    url: str
    seed: int

    def add_rule(self, name: str = "ops") -> None:
        self.installation.admin.notices.add(
            name, "failed", _BY, secret=_SECRET, url=self.url, queue="failing", group_for=GROUP_FOR
        )

    def none_lost(self, count: int, kills: int) -> None:
        """Let jobs fail, and kill the worker while it delivers their notices."""
        report, receiver = self.report, self.receiver
        self.add_rule()
        receiver.kills_left = kills
        began = time.monotonic()
        feeding = threading.Thread(target=self._feed, args=(count, kills))
        feeding.start()
        while feeding.is_alive() or receiver.kills_left or self._failed() < count:
            if time.monotonic() - began > _WITHIN + 30 * kills:
                raise RuntimeError("it does not end")
            if receiver.kill.wait(_LOOK):
                self.installation.worker.kill()
                report.fault("the worker is killed before the answer to its notice")
                receiver.killed.set()
                self.installation.replace_worker()
                receiver.kill.clear()
        feeding.join()
        self.installation.wait_until(lambda: not self._open(), _WITHIN, look=_LOOK)
        lasted = time.monotonic() - began
        report.jobs += count
        dead = self._failed()
        report.at_most("jobs that are not dead letters", count - dead, 0)
        report.at_most(
            "dead letters that no notice counts", dead - sum(receiver.counts.values()), 0
        )
        report.at_most("dead letters counted too often", sum(receiver.counts.values()) - dead, 0)
        report.at_most("notices that are dead letters", self._dead_notices(), 0)
        report.at_most("repeated notices with another count", receiver.differing, 0)
        report.at_least("causes with notices", len(set(receiver.groups.values())), len(CAUSES))
        most = max(Counter(receiver.groups.values()).values())
        report.at_most("notices of one cause", most, lasted / GROUP_FOR + 2)
        report.note("notices", len(receiver.counts))
        report.note("deliveries that were repeated", receiver.repeated)
        report.note("seconds", lasted, " s")

    def _feed(self, count: int, kills: int) -> None:
        """Enqueue failures in small batches, so that every kill finds notices."""
        choice = random.Random(self.seed)  # noqa: S311 - a load
        batch = 20
        with connect(self.installation.url) as admin:
            for left in range(count, 0, -batch):
                requests = [
                    JobRequest(
                        task="fail",
                        args={"cause": choice.choice(CAUSES)},
                        queue="failing",
                        max_attempts=1,
                    )
                    for _ in range(min(batch, left))
                ]
                admin.jobs.enqueue_many(requests, _BY)
                # The last failures wait until the last kill, so that each has a notice to hit.
                pause = 4.0 * kills * batch / count
                time.sleep(pause)

    def not_slower(self, rounds: int, window: float) -> None:
        """Measure the rate of other jobs with a working and a broken receiver, in turns."""
        rates: dict[bool, list[float]] = {False: [], True: []}
        stop = threading.Event()
        feeding = threading.Thread(target=self._load, args=(stop,))
        feeding.start()
        try:
            time.sleep(window / 2)
            for number in range(rounds * 2):
                # ABBA: a drift of the machine weighs on both alike.
                self.receiver.is_broken = number % 4 in {1, 2}
                time.sleep(window / 4)
                before, began = self._completed(), time.monotonic()
                time.sleep(window)
                rate = (self._completed() - before) / (time.monotonic() - began)
                rates[self.receiver.is_broken].append(rate)
        finally:
            stop.set()
            feeding.join()
        with_, without = median(rates[True]), median(rates[False])
        self.report.note("jobs per second, the receiver works", without)
        self.report.note("jobs per second, the receiver is broken", with_)
        self.report.at_least("the ratio of both", with_ / without, RATIO)

    def _load(self, stop: threading.Event) -> None:
        """Keep a backlog of quick jobs, and let some jobs fail."""
        quick_jobs = [JobRequest(task="quick", args={}, queue="fast")] * 500
        failing = [
            JobRequest(task="fail", args={"cause": cause}, queue="failing", max_attempts=1)
            for cause in CAUSES
        ]
        with connect(self.installation.url) as admin:
            while not stop.wait(0.05):
                [row] = self.installation.rows(
                    "SELECT count(*) AS n FROM (SELECT FROM tenure.job WHERE queue = 'fast' "
                    "AND state = 'queued' LIMIT 3000) AS waiting"
                )
                if row["n"] < 3000:
                    admin.jobs.enqueue_many(quick_jobs, _BY)
                    admin.jobs.enqueue_many(failing, _BY)

    def _completed(self) -> int:
        [row] = self.installation.rows(
            "SELECT count(*) AS n FROM tenure.job_archive WHERE queue = 'fast'"
        )
        return int(row["n"])

    def _failed(self) -> int:
        [row] = self.installation.rows(
            "SELECT count(*) AS n FROM tenure.job_failed WHERE queue = 'failing'"
        )
        return int(row["n"])

    def _dead_notices(self) -> int:
        [row] = self.installation.rows(
            "SELECT count(*) AS n FROM tenure.job_failed WHERE queue = 'tenure.notices'"
        )
        return int(row["n"])

    def _open(self) -> int:
        [row] = self.installation.rows(
            "SELECT count(*) AS n FROM tenure.job WHERE queue = 'tenure.notices'"
        )
        return int(row["n"])


def prove(*, count: int, kills: int, rounds: int, window: float, seed: int) -> Report:
    """Run it on a private server."""
    report = Report({"jobs": count, "kills": kills, "rounds": rounds, "seed": seed})
    receiver = Receiver()
    with receiving(receiver) as url:
        port = url.rstrip("/").rpartition(":")[2]
        key = base64.b64encode(random.Random(seed).randbytes(32)).decode()  # noqa: S311 - a proof's
        os.environ["TENURE_SECRET_OPS"] = f"whsec_{key}"
        os.environ["TENURE_KINDS_HTTP"] = json.dumps({"allow": [f"localhost:{port}"]})
        os.environ["TENURE_KINDS"] = "http"
        with installed(_TARGET, _QUEUES) as installation:
            installation.admin.queues.configure(
                "tenure.notices", _BY, lease=timedelta(seconds=LEASE), max_attempts=None
            )
            run = Run(installation, report, receiver, url, seed)
            run.none_lost(count, kills)
            run.not_slower(rounds, window)
    return report


def main(argv: list[str]) -> int:
    """Run it; 0 if no bar was missed."""
    parser = argparse.ArgumentParser(prog="just prove notices", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT:,} jobs")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(argv)
    count, kills, rounds, window = (
        (SHORT, SHORT_KILLS, SHORT_ROUNDS, SHORT_WINDOW)
        if options.short
        else (FULL, KILLS, ROUNDS, WINDOW)
    )
    return tried(
        lambda: prove(count=count, kills=kills, rounds=rounds, window=window, seed=options.seed),
        _FILE,
        short=options.short,
    )
