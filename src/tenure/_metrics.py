"""Metrics in Prometheus' text format, and the table of all metrics.

Metrics in Prometheus' text format: what a metric is, and the page that one answers with.

`tenure.server` and `tenure.worker` know their values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricKind(StrEnum):
    """How Prometheus reads a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, the names of its labels, and a sentence that says what it is."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    help: str


class MetricsPage:
    """Metrics with their values, for a scraper. A metric without a value has no line."""

    def __init__(self) -> None:
        self._lines: dict[Metric, list[str]] = {}

    def put(self, metric: Metric, value: float, *labels: str) -> None:
        """One value, by the metric's labels in their order."""
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
        """A histogram: how many were counted up to each bound and beyond the last; the sum."""
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
        """The page."""
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


def _counter(name: str, words: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, labels, words)


def _gauge(name: str, words: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, labels, words)


def _histogram(name: str, words: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.HISTOGRAM, labels, words)


# Of the installation, by a server: the same whichever server is asked.
DATABASE_UP = _gauge(
    "tenure_database_up", "1 if the database answered in the last round of questions, else 0."
)
COLLECTION_SECONDS = _gauge("tenure_metrics_collection_seconds", "How long the last round took.")
COLLECTION_AGE = _gauge("tenure_metrics_age_seconds", "How old the figures of the last round are.")
PART_UP = _gauge(
    "tenure_metrics_part_up", "1 if a part of the last round was answered in time.", "part"
)
SERIES_DROPPED = _gauge(
    "tenure_metrics_series_dropped",
    "How many queues, or tasks in queues, have no labels of their own because there are too many.",
    "kind",
)
COUNTS_AGE = _gauge(
    "tenure_counts_age_seconds", "How long ago the last minute ended that is counted."
)
ATTEMPTS = _counter(
    "tenure_attempts_ended_total",
    "Attempts that ended since this server began, by how; leases that were lost are outcome lost.",
    *("queue", "task", "outcome"),
)
WAIT = _histogram(
    "tenure_attempt_wait_seconds", "From when a job was due to its claim.", "queue", "task"
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
    "For how long the first job of a queue has been due; 0 if none is.",
    "queue",
)
QUEUE_WORKERS = _gauge("tenure_queue_workers", "Live workers that take jobs from a queue.", "queue")
QUEUE_PAUSED = _gauge("tenure_queue_paused", "1 if a queue, or every queue, is paused.", "queue")
WORKERS = _gauge(
    "tenure_workers", "Workers by state: active, draining, or stale without a heartbeat.", "state"
)
SLOTS = _gauge("tenure_slots", "Jobs that live workers can run at once.")
SLOTS_BUSY = _gauge("tenure_slots_busy", "Jobs that live workers say they run.")
LEASE_OVERDUE = _gauge(
    "tenure_lease_overdue_seconds",
    "For how long the first lease has been over that nobody has ended; 0 if there is none.",
)
SCHEDULES_DUE = _gauge(
    "tenure_schedules_due", "Schedules that are due and not fired; counted up to 10000."
)
SCHEDULE_LATE = _gauge(
    "tenure_schedule_late_seconds", "For how long the first schedule has been due; 0 if none is."
)
TICKS = _gauge(
    "tenure_schedule_ticks",
    "Ticks of the last hour by what they came to; 60 each of 1000 schedules at the most.",
    *("outcome", "reason"),
)
OPERATIONS = _gauge("tenure_operations_running", "Operations that are under way.")
ITEMS_LEFT = _gauge("tenure_operation_items_left", "Items of those that have no outcome yet.")
OPERATION_LATE = _gauge(
    "tenure_operation_late_seconds",
    "For how long the next chunk of an operation has been due; 0 if none is.",
)
TABLE_BYTES = _gauge("tenure_table_bytes", "Size of a table, its indexes with it.", "table")
LIVE_ROWS = _gauge("tenure_table_live_rows", "Rows of a table, estimated.", "table")
DEAD_ROWS = _gauge("tenure_table_dead_rows", "Dead rows of a table, estimated.", "table")
HORIZON = _gauge(
    "tenure_database_horizon_transactions",
    "By how many transactions the oldest one lags from which on dead rows are kept.",
)
OLDEST = _gauge(
    "tenure_database_oldest_transaction_seconds",
    "The age of the oldest transaction that keeps dead rows and that the server's role may see.",
)

# Of one process of `tenure server`.
STARTED = _gauge("tenure_server_start_time_seconds", "When this process began, since 1970.")
COLLECTIONS = _counter(
    "tenure_metrics_collections_total",
    "Rounds of questions, by whether all were answered.",
    "outcome",
)
REQUESTS = _counter(
    "tenure_server_requests_total", "Requests answered, by route.", "method", "route", "status"
)
WAITING = _gauge("tenure_server_acquires_waiting", "Workers elsewhere that wait for a job here.")

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

# Of one process of `tenure worker`, its children with it, or of `tenure scheduler`.
WORKER_STARTED_AT = _gauge("tenure_worker_start_time_seconds", "When this began, since 1970.")
WORKER_DRAINING = _gauge("tenure_worker_draining", "1 if it was told to stop.")
WORKER_CHILDREN = _gauge("tenure_worker_children", "Child processes that there are.")
WORKER_WANTED = _gauge("tenure_worker_children_wanted", "Child processes that there should be.")
WORKER_CHILDREN_ENDED = _counter(
    "tenure_worker_children_ended_total", "Child processes that ended, by reason.", "reason"
)
WORKER_PROCESSES_ENDED = _counter(
    "tenure_worker_handler_processes_ended_total",
    "Processes of single handlers that ended, by reason.",
    "reason",
)
WORKER_SLOTS = _gauge("tenure_worker_slots", "Jobs that it can run at once.")
WORKER_RUNNING = _gauge("tenure_worker_running", "Jobs that it runs.")
WORKER_LEASES = _gauge(
    "tenure_worker_leases", "Leases that it holds, of jobs that have not begun or not settled too."
)
WORKER_HEARTBEAT = _gauge(
    "tenure_worker_heartbeat_age_seconds",
    "How long ago the database took the oldest child's heartbeat.",
)
WORKER_JOBS_STARTED = _counter("tenure_worker_jobs_started_total", "Handlers that began.", "task")
WORKER_JOBS_ENDED = _counter(
    "tenure_worker_jobs_ended_total", "Attempts that were settled, by how.", "task", "outcome"
)
WORKER_LOST = _counter("tenure_worker_leases_lost_total", "Leases that it lost.")
WORKER_RESCUED = _counter(
    "tenure_worker_leases_rescued_total",
    "Leases, of any worker, that it ended when they were over.",
)
WORKER_CLAIMS = _counter("tenure_worker_claims_total", "Claims that it made.")
WORKER_CLAIMED = _counter("tenure_worker_jobs_claimed_total", "Jobs that they brought.")
WORKER_RENEWED = _counter("tenure_worker_renewals_total", "Leases that it renewed.")
WORKER_LATE = _counter(
    "tenure_worker_renewals_late_total", "Of those, the ones renewed in the last half of the lease."
)
WORKER_ERRORS = _counter(
    "tenure_worker_database_errors_total", "What the database did not do, by service.", "service"
)
WORKER_TICKS = _counter("tenure_worker_ticks_total", "Ticks of schedules that it recorded.")
WORKER_TICK_JOBS = _counter("tenure_worker_tick_jobs_total", "Jobs that those made.")

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
