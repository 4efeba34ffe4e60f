"""What was found wrong, or fine, and how bad it is."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is. Only a problem fails a command."""

    FINE = "fine"
    WARNING = "warning"
    PROBLEM = "problem"


class Fault(StrEnum):
    """What can be wrong with an installation."""

    UNREACHABLE = "unreachable"
    SERVER_TOO_OLD = "server_too_old"
    FSYNC_OFF = "fsync_off"
    FULL_PAGE_WRITES_OFF = "full_page_writes_off"
    SYNCHRONOUS_COMMIT_OFF = "synchronous_commit_off"
    CLOCK_DIFFERS = "clock_differs"
    LISTEN_FAILED = "listen_failed"
    POOLER = "pooler"
    NOT_HEARD = "not_heard"
    NOTIFY_QUEUE_FULL = "notify_queue_full"
    REDIS_AWAY = "redis_away"
    RIGHTS_MISSING = "rights_missing"
    SCHEMA_DIFFERS = "schema_differs"
    TABLE_MISSING = "table_missing"
    COLUMN_MISSING = "column_missing"
    CONSTRAINT_MISSING = "constraint_missing"
    INDEX_MISSING = "index_missing"
    INDEX_INVALID = "index_invalid"
    PARTITION_MISSING = "partition_missing"
    PARTITION_PAST = "partition_past"
    AUTOVACUUM_OFF = "autovacuum_off"
    TABLE_NOT_VACUUMED = "table_not_vacuumed"
    DEAD_ROWS = "dead_rows"
    HORIZON_HELD = "horizon_held"
    WORKER_STALE = "worker_stale"
    NO_WORKER = "no_worker"
    VERSIONS_MIXED = "versions_mixed"
    QUEUE_NOT_SERVED = "queue_not_served"
    JOB_LOCKED = "job_locked"
    TASK_UNKNOWN = "task_unknown"
    LEASE_OVER = "lease_over"
    SCHEDULE_OVERDUE = "schedule_overdue"
    NOT_LOOKED_AT = "not_looked_at"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found; where it is not fine, why it matters and what to do. `fault` says it to a
    program."""

    subject: str
    level: Level
    what: str
    why: str = ""
    todo: str = ""
    fault: Fault | None = None
