"""Does a job cost the same whatever else is in the tables? Conditions against the empty case."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bench.measure import Meter
from bench.subjects import QUEUE
from tenure._model.job import State
from tenure._rules.claiming import scan_delay

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from bench.report import Report
    from bench.server import Server
    from bench.subjects import Tenure

BATCH = 100
JOBS = 4_000
ALTERNATIONS = 5
NOISE = 200e-6
PRIORITIES = tuple(range(10))
_FILL = """
INSERT INTO tenure.job (queue, task, args, priority, created_at, run_at, max_attempts, max_losses)
SELECT %(queue)s, 'noop', '{}', n %% 10, now(), %(run_at)s::timestamptz + n * interval '1 ms', 3, 3
FROM generate_series(1, %(count)s) AS n
"""
ARCHIVE = """
WITH filed AS (
    INSERT INTO tenure.job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, done_reason, args
    )
    SELECT nextval('tenure.job_id_seq'), 1, now(), now(), now(), now(), now(), gen_random_uuid(),
        (now() AT TIME ZONE 'UTC')::date, 0, 5, 1, 3, 0, 'completed', 'other', 'noop',
        'worker_done', '{}'
    FROM generate_series(1, %(count)s)
    RETURNING *
)
INSERT INTO tenure.attempt (
    job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
    outcome, queue, task
)
SELECT f.id, f.token, f.run_at, f.claimed_at, f.ended_at, f.claimed_by, f.filed_on, 0, 1, false,
    'completed', f.queue, f.task
FROM filed AS f
"""


@dataclass
class Condition:
    """A database in one condition, with the store at work in it."""

    name: str
    tenure: Tenure
    admin: Any
    due: int = 0
    horizon: Any = None
    floor: datetime | None = None
    costs: list[float] = field(default_factory=list)
    calls: dict[str, list[float]] = field(default_factory=dict)
    scanned: float = 0.0
    next_scan_at: float = 0.0


def run(server: Server, report: Report) -> None:
    millions = {"due": 50_000, "later": 200_000, "archived": 200_000, "pinned": 20_000}
    if not report.short:
        millions = {
            "due": 1_000_000,
            "later": 10_000_000,
            "archived": 10_000_000,
            "pinned": 200_000,
        }
    report.title(
        "Flatness: database processor time per job, claim + settle at batch 100, ten lanes"
    )
    conditions = [_make(server, "empty", lambda _: None)]
    for name, prepare in (
        (f"{millions['due']:,} due", _due(millions["due"])),
        (f"{millions['later']:,} scheduled for later", _later(millions["later"])),
        (f"horizon pinned over {millions['pinned']:,} settled", pinned(millions["pinned"])),
        (f"{millions['archived']:,} archived", _archived(millions["archived"])),
    ):
        began = time.perf_counter()
        conditions.append(_make(server, name, prepare))
        print(f"  (made: {name}, {time.perf_counter() - began:.0f} s)", flush=True)
    for condition in conditions:
        _work(condition)
        condition.costs.clear()
        condition.calls.clear()
    for _ in range(ALTERNATIONS):
        for condition in conditions:
            _work(condition)
    _compare(report, conditions)
    for condition in conditions:
        if condition.horizon:
            condition.horizon.close()
        condition.admin.close()
        condition.tenure.connection.close()


def _make(server: Server, name: str, prepare: Callable[[Condition], None]) -> Condition:
    url = server.database()
    condition = Condition(name, server.tenure(url), server.admin(url))
    prepare(condition)
    if condition.horizon is None:
        condition.admin.execute("VACUUM ANALYZE")
    return condition


def _due(count: int) -> Callable[[Condition], None]:
    def prepare(condition: Condition) -> None:
        condition.due = count
        past = "now() - interval '1 day'"
        fill = _FILL.replace("%(run_at)s::timestamptz", past)
        condition.admin.execute(fill, {"queue": QUEUE, "count": count})

    return prepare


def _later(count: int) -> Callable[[Condition], None]:
    def prepare(condition: Condition) -> None:
        ahead = "now() + interval '1 day'"
        fill = _FILL.replace("%(run_at)s::timestamptz", ahead)
        condition.admin.execute(fill, {"queue": QUEUE, "count": count})

    return prepare


def _archived(count: int) -> Callable[[Condition], None]:
    def prepare(condition: Condition) -> None:
        condition.admin.execute(ARCHIVE, {"count": count})

    return prepare


def pinned(count: int) -> Callable[[Condition], None]:
    """A transaction that is left open, and jobs that come and go over it with short leases."""

    def prepare(condition: Condition) -> None:
        condition.admin.execute("VACUUM ANALYZE")
        info = condition.admin.info
        condition.horizon = type(condition.admin).connect(info.dsn)
        condition.horizon.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        condition.horizon.execute("SELECT count(*) FROM tenure.job")
        tenure = condition.tenure
        for _ in range(count // 2_000):
            tenure.enqueue(2_000, "{}", priorities=PRIORITIES)
            tenure.woken()
            while claims := tenure.claim(500, ttl=timedelta(seconds=1)):
                tenure.settle(claims)

    return prepare


def _work(condition: Condition) -> None:
    """Some jobs through the condition, with the scans from zero that a claimer would make."""
    tenure, meter = condition.tenure, Meter()
    if not condition.due:
        tenure.enqueue(JOBS, "{}", priorities=PRIORITIES)
    tenure.woken()
    done = 0
    while done < JOBS:
        with meter.time(tenure.connection, "job"):
            claims = tenure.claim(BATCH)
            tenure.settle(claims)
        done += len(claims)
        if not claims:
            raise AssertionError(f"{condition.name}: nothing to claim after {done} jobs")
        if time.monotonic() >= condition.next_scan_at:
            began = time.monotonic()
            with meter.time(tenure.connection, "scan"):
                found = tenure.scan(BATCH)
            took = timedelta(seconds=time.monotonic() - began)
            condition.next_scan_at = (
                time.monotonic() + scan_delay(took, processes=1).total_seconds()
            )
            if found:
                tenure.settle(found)
                done += len(found)
    cpu = meter.cpu["job"] + meter.cpu.get("scan", 0.0)
    condition.costs.append(cpu / done * 1e6)
    condition.scanned += meter.cpu.get("scan", 0.0)
    _calls(condition)


def _calls(condition: Condition) -> None:
    """The sweep with its floor, and first pages of the lists with something newest in them."""
    tenure, meter = condition.tenure, Meter()
    store, session = tenure.store, tenure.session
    for _ in range(2):
        with meter.time(tenure.connection, "sweep"):
            rescues = session.run(store.leases.rescue(floor=condition.floor))
        condition.floor = rescues.now - timedelta(seconds=2)
    tenure.enqueue(50, "{}", priorities=PRIORITIES)
    for state in (State.QUEUED, State.COMPLETED, State.FAILED):
        for _ in range(3):
            with meter.time(tenure.connection, f"list {state}"):
                session.run(store.job_queries.list(state))
    with meter.time(tenure.connection, "list running (none: the worst)"):
        session.run(store.job_queries.list(State.RUNNING))
    tenure.woken()
    while not condition.due and (claims := tenure.claim(BATCH)):
        tenure.settle(claims)
    for label, cpu in meter.cpu.items():
        condition.calls.setdefault(label, []).append(cpu / meter.calls[label])


def _compare(report: Report, conditions: list[Condition]) -> None:
    empty = conditions[0]
    base = statistics.median(empty.costs)
    print(f"  empty: {base:.1f} µs/job")
    for condition in conditions[1:]:
        pairs = [c / e for c, e in zip(condition.costs, empty.costs, strict=True)]
        key = f"flat:{condition.name}"
        cost = statistics.median(condition.costs)
        report.line(f"{key}:cost", f"  {condition.name}: {cost:.1f} µs/job", us=cost)
        report.bar(key, f"{condition.name}, against empty", statistics.median(pairs), 1.5, " ×")
    report.title(
        "Sweep and lists: database processor time per call, µs (below 200 a ratio is noise)"
    )
    for label in empty.calls:
        medians = {c.name: statistics.median(c.calls[label]) * 1e6 for c in conditions}
        text = "  ".join(f"{name}: {value:,.0f}" for name, value in medians.items())
        report.line(f"call:{label}", f"  {label:9} {text}", **medians)
        for condition in conditions[1:]:
            value = max(medians[condition.name] / 1e6, NOISE)
            ratio = value / max(medians["empty"] / 1e6, NOISE)
            report.bar(f"{label}:{condition.name}", f"{label}, {condition.name}", ratio, 1.5, " ×")
