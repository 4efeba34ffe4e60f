"""What can happen to a server under load: SIGKILL and a new start, and callers that hang up before
their answer is written. Those are made certain by a lock: their claims wait behind it until they
have gone, and jobs claimed for a missing client must be returned."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from proof.crash import jobs, losses
from proof.crash.fleet import Shape
from proof.via_http.jobs import killed

if TYPE_CHECKING:
    from proof.crash.way import Way
    from proof.report import Report
    from proof.via_http.harness import HttpBed

SHAPE = Shape(workers=2, processes=1, slots=4)
# More than there are slots: another client's claim always finds a job.
_BUSY = 5 * SHAPE.all_slots
_GAP = (0.8, 2.0)
_DOWN = (0.0, 1.0)
_CALLERS = 5
_JOBS_EACH = 2
_NAME = "gone"
_CLAIMS_WAIT = 0.15
# A server says of each caller that it is there, once per beat; this is longer.
_REGISTERED = 0.8
_DRAIN_WITHIN = 90.0
_GONE = """
SELECT a.outcome, count(*), max(extract(epoch FROM a.ended_at - a.started_at))::float
FROM tenure.attempt AS a
JOIN tenure.worker AS w ON w.id = a.claimed_by AND w.name = %(name)s
GROUP BY a.outcome
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many kills of the server, and how often some callers hang up at once."""

    kills: int
    hangups: int


def run(bed: HttpBed, report: Report, plan: Plan, way: Way) -> None:
    """Strike until the plan is fulfilled, let everything end, and close the accounts."""
    strikes = ["kill"] * plan.kills + ["hang up"] * plan.hangups
    bed.rng.shuffle(strikes)
    with bed:
        for strike in strikes:
            next_at = time.monotonic() + bed.rng.uniform(*_GAP)
            while time.monotonic() < next_at:
                bed.pump(killed, busy=_BUSY)
            if strike == "kill":
                _kill(bed, report)
            else:
                _hang_up(bed, report)
        bed.all_end(_DRAIN_WITHIN)
    report.note("SIGKILLs of the server", plan.kills)
    report.note("callers that hung up before their answer", plan.hangups * _CALLERS)
    ends = {outcome: (count, took) for outcome, count, took in bed.rows(_GONE, name=_NAME)}
    given, took = ends.pop("released", (0, 0.0))
    report.at_least("  leases given back for them", given, plan.hangups)
    report.note("  held for, at most", took, " s")
    # A server that is too slow to give them back within a lease, or is killed before, loses them.
    report.none("  leases that ended otherwise", ends.items(), timed=True)
    way.settle(bed, report)
    report.note("leases lost while the server was away", len(losses.find(bed, []).unstruck))


def _kill(bed: HttpBed, report: Report) -> None:
    began = time.monotonic()
    bed.server.kill()
    time.sleep(bed.rng.uniform(*_DOWN))
    bed.start_server()
    report.fault("SIGKILL of the server", time.monotonic() - began)


def _hang_up(bed: HttpBed, report: Report) -> None:
    with psycopg.connect(bed.url) as locking:
        locking.execute("LOCK TABLE tenure.job IN ACCESS EXCLUSIVE MODE")
        callers = [_ask(bed) for _ in range(_CALLERS)]
        time.sleep(_CLAIMS_WAIT)
        for caller in callers:
            caller.close()
            report.fault("a caller hangs up")
        time.sleep(_CLAIMS_WAIT)
    until = time.monotonic() + _REGISTERED
    while time.monotonic() < until:
        bed.pump(killed, busy=_BUSY)


def _ask(bed: HttpBed) -> socket.socket:
    """Send an acquire, and read nothing."""
    me = {"name": _NAME, "slots": _JOBS_EACH}
    request = {"queues": [jobs.QUEUE], "worker": me, "count": _JOBS_EACH, "wait": 5}
    body = json.dumps(request).encode()
    head = (
        f"POST /v1/leases:acquire HTTP/1.1\r\nHost: proof\r\nAuthorization: Bearer {bed.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    caller = socket.create_connection(("127.0.0.1", bed.server.port), timeout=5)
    caller.sendall(head.encode() + body)
    return caller
