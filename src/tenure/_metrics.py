"""All metrics, in Prometheus text format. `tenure.server` and `tenure.worker` set their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    help: str


class MetricsPage:
    """A page of metrics and values. A metric without a value is omitted."""

    def __init__(self) -> None:
        self._lines: dict[Metric, list[str]] = {}

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        pairs = zip(metric.labels, labels, strict=True)
        self._add(metric, metric.name, [_pair(*pair) for pair in pairs], value)

    def spread(
        self,
        metric: Metric,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        *labels: str,
    ) -> None:
        """Add a histogram: the count up to each bound and beyond the last one, and the sum."""
        pairs = [_pair(*pair) for pair in zip(metric.labels, labels, strict=True)]
        below = list(accumulate(counts))
        for bound, count in zip([*map(_number, bounds), "+Inf"], below, strict=True):
            self._add(metric, f"{metric.name}_bucket", [*pairs, _pair("le", bound)], count)
        self._add(metric, f"{metric.name}_sum", pairs, total)
        self._add(metric, f"{metric.name}_count", pairs, below[-1])

    def _add(self, metric: Metric, name: str, pairs: Sequence[str], value: float) -> None:
        labels = f"{{{','.join(pairs)}}}" if pairs else ""
        self._lines.setdefault(metric, []).append(f"{name}{labels} {_number(value)}")

    def text(self) -> str:
        lines = []
        for metric, values in self._lines.items():
            lines.append(f"# HELP {metric.name} {metric.help}")
            lines.append(f"# TYPE {metric.name} {metric.kind}")
            lines += values
        return "".join(f"{line}\n" for line in lines)


def _pair(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return f'{name}="{escaped}"'


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(float(value))


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, labels, text)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, labels, text)


def _histogram(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.HISTOGRAM, labels, text)


# Installation-wide metrics, the same on every server.
DATABASE_UP = _gauge(
    "tenure_database_up", "1 if the database answered the last collection, else 0."
)
COLLECTION_SECONDS = _gauge("tenure_metrics_collection_seconds", "Duration of the last collection.")
COLLECTION_AGE = _gauge("tenure_metrics_age_seconds", "Age of the last collection.")
PART_UP = _gauge(
    "tenure_metrics_part_up", "1 if this part of the last collection succeeded in time.", "part"
)
SERIES_DROPPED = _gauge(
    "tenure_metrics_series_dropped",
    "Queues, or tasks in queues, without their own labels because there are too many.",
    "kind",
)
COUNTS_AGE = _gauge(
    "tenure_counts_age_seconds", "Time since the end of the last minute in the statistics."
)
ATTEMPTS = _counter(
    "tenure_attempts_ended_total",
    "Attempts that ended since this server started, by outcome.",
    *("queue", "task", "outcome"),
)
WAIT = _histogram(
    "tenure_attempt_wait_seconds",
    "Queue latency: from when a job was due to its claim.",
    "queue",
    "task",
)
RUN = _histogram(
    "tenure_attempt_run_seconds", "From the claim to the end of the attempt.", "queue", "task"
)
JOBS = _gauge(
    "tenure_queue_jobs",
    "Jobs by queue and state: due, scheduled, running, held or failed; counted up to 10000.",
    *("queue", "state"),
)
DUE_AGE = _gauge(
    "tenure_queue_oldest_due_age_seconds",
    "How long the oldest due job of a queue has waited; 0 without one.",
    "queue",
)
QUEUE_WORKERS = _gauge("tenure_queue_workers", "Live workers that serve a queue.", "queue")
QUEUE_PAUSED = _gauge("tenure_queue_paused", "1 if a queue, or every queue, is paused.", "queue")
WORKERS = _gauge(
    "tenure_workers", "Workers by state: active, draining, or stale (no heartbeat).", "state"
)
SLOTS = _gauge("tenure_slots", "Jobs that live workers can run at once.")
SLOTS_BUSY = _gauge("tenure_slots_busy", "Jobs that live workers report as running.")
LEASE_OVERDUE = _gauge(
    "tenure_lease_overdue_seconds",
    "How long the oldest expired lease has not been rescued; 0 without one.",
)
SCHEDULES_DUE = _gauge(
    "tenure_schedules_due", "Schedules that are due but not fired; counted up to 10000."
)
SCHEDULE_LATE = _gauge(
    "tenure_schedule_late_seconds", "How long the oldest due schedule has waited; 0 without one."
)
TICKS = _gauge(
    "tenure_schedule_ticks",
    "Ticks of the last hour by outcome; at most 60 each of 1000 schedules.",
    *("outcome", "reason"),
)
OPERATIONS = _gauge("tenure_operations_running", "Bulk operations that are running.")
ITEMS_LEFT = _gauge(
    "tenure_operation_items_left", "Items of running bulk operations without an outcome."
)
OPERATION_LATE = _gauge(
    "tenure_operation_late_seconds",
    "How long the next chunk of a bulk operation has been due; 0 without one.",
)
TABLE_BYTES = _gauge("tenure_table_bytes", "Size of a table with its indexes.", "table")
LIVE_ROWS = _gauge("tenure_table_live_rows", "Live rows of a table, estimated.", "table")
DEAD_ROWS = _gauge("tenure_table_dead_rows", "Dead rows of a table, estimated.", "table")
HORIZON = _gauge(
    "tenure_database_horizon_transactions",
    "Age, in transactions, of the oldest snapshot that keeps dead rows.",
)
OLDEST = _gauge(
    "tenure_database_oldest_transaction_seconds",
    "Age of the oldest transaction that keeps dead rows, if visible to the server's role.",
)

# Metrics for one `tenure server` process.
STARTED = _gauge(
    "tenure_server_start_time_seconds", "Start time of this process, in seconds since 1970."
)
COLLECTIONS = _counter("tenure_metrics_collections_total", "Collections, by outcome.", "outcome")
REQUESTS = _counter(
    "tenure_server_requests_total", "Requests answered, by route.", "method", "route", "status"
)
WAITING = _gauge(
    "tenure_server_acquires_waiting", "Remote workers that wait for a job on this server."
)

SERVER = (
    *(
        DATABASE_UP,
        COLLECTION_SECONDS,
        COLLECTION_AGE,
        PART_UP,
        SERIES_DROPPED,
        COUNTS_AGE,
        ATTEMPTS,
        WAIT,
        RUN,
    ),
    *(JOBS, DUE_AGE, QUEUE_WORKERS, QUEUE_PAUSED, WORKERS, SLOTS, SLOTS_BUSY, LEASE_OVERDUE),
    *(SCHEDULES_DUE, SCHEDULE_LATE, TICKS, OPERATIONS, ITEMS_LEFT, OPERATION_LATE),
    *(TABLE_BYTES, LIVE_ROWS, DEAD_ROWS, HORIZON, OLDEST),
    *(STARTED, COLLECTIONS, REQUESTS, WAITING),
)

# Metrics for one `tenure worker` with its children, or for `tenure scheduler`.
WORKER_STARTED_AT = _gauge("tenure_worker_start_time_seconds", "Start time, in seconds since 1970.")
WORKER_DRAINING = _gauge("tenure_worker_draining", "1 if it is draining.")
WORKER_CHILDREN = _gauge("tenure_worker_children", "Child processes.")
WORKER_WANTED = _gauge("tenure_worker_children_wanted", "Configured number of child processes.")
WORKER_CHILDREN_ENDED = _counter(
    "tenure_worker_children_ended_total", "Child processes that ended, by reason.", "reason"
)
WORKER_PROCESSES_ENDED = _counter(
    "tenure_worker_handler_processes_ended_total",
    "Handler processes that ended, by reason.",
    "reason",
)
WORKER_SLOTS = _gauge("tenure_worker_slots", "Jobs that this worker can run at once.")
WORKER_RUNNING = _gauge("tenure_worker_running", "Jobs that this worker runs.")
WORKER_LEASES = _gauge(
    "tenure_worker_leases", "Leases held, also of jobs that have not started or are not settled."
)
WORKER_HEARTBEAT = _gauge(
    "tenure_worker_heartbeat_age_seconds", "Age of the oldest heartbeat of a child in the database."
)
WORKER_JOBS_STARTED = _counter("tenure_worker_jobs_started_total", "Handlers started.", "task")
WORKER_JOBS_ENDED = _counter(
    "tenure_worker_jobs_ended_total", "Attempts settled, by outcome.", "task", "outcome"
)
WORKER_LOST = _counter("tenure_worker_leases_lost_total", "Leases lost.")
WORKER_RESCUED = _counter(
    "tenure_worker_leases_rescued_total", "Expired leases of any worker that it rescued."
)
WORKER_CLAIMS = _counter("tenure_worker_claims_total", "Claims sent.")
WORKER_CLAIMED = _counter("tenure_worker_jobs_claimed_total", "Jobs claimed.")
WORKER_RENEWED = _counter("tenure_worker_renewals_total", "Leases renewed.")
WORKER_LATE = _counter(
    "tenure_worker_renewals_late_total", "Leases renewed in the last half of their time."
)
WORKER_ERRORS = _counter(
    "tenure_worker_database_errors_total", "Database errors, by service.", "service"
)
WORKER_TICKS = _counter("tenure_worker_ticks_total", "Schedule ticks recorded.")
WORKER_TICK_JOBS = _counter("tenure_worker_tick_jobs_total", "Jobs created by schedule ticks.")

WORKER = (
    *(WORKER_STARTED_AT, WORKER_DRAINING, WORKER_CHILDREN, WORKER_WANTED, WORKER_CHILDREN_ENDED),
    *(WORKER_PROCESSES_ENDED, WORKER_SLOTS, WORKER_RUNNING, WORKER_LEASES, WORKER_HEARTBEAT),
    *(
        WORKER_JOBS_STARTED,
        WORKER_JOBS_ENDED,
        WORKER_LOST,
        WORKER_RESCUED,
        WORKER_CLAIMS,
        WORKER_CLAIMED,
    ),
    *(WORKER_RENEWED, WORKER_LATE, WORKER_ERRORS, WORKER_TICKS, WORKER_TICK_JOBS),
)
