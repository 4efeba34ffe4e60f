"""`tenure doctor` findings, and the facts behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from tenure._model.ids import JobId


class Level(StrEnum):
    """A finding's severity. Only a problem makes the command fail."""

    FINE = "fine"
    WARNING = "warning"
    PROBLEM = "problem"


class FindingCode(StrEnum):
    """Codes for the problems that `tenure doctor` can find."""

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
    RIGHTS_TOO_WIDE = "rights_too_wide"
    ROLE_SETTING = "role_setting"
    NOT_ENCRYPTED = "not_encrypted"
    SUPERUSER = "superuser"
    PAYLOADS_LOGGED = "payloads_logged"
    PASSWORD_EXPOSED = "password_exposed"  # noqa: S105 - a code
    SCHEMA_DIFFERS = "schema_differs"
    TABLE_MISSING = "table_missing"
    COLUMN_MISSING = "column_missing"
    CONSTRAINT_MISSING = "constraint_missing"
    INDEX_MISSING = "index_missing"
    INDEX_INVALID = "index_invalid"
    FUNCTION_MISSING = "function_missing"
    FUNCTION_CHANGED = "function_changed"
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
    TOKEN_ENDLESS = "token_endless"  # noqa: S105 - a code
    TOKEN_UNUSED = "token_unused"  # noqa: S105 - a code
    NOT_LOOKED_AT = "not_looked_at"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: what was found (`what`), why it matters (`why`), and how to fix it (`todo`).

    `fault` is the finding's code.
    """

    subject: str
    level: Level
    what: str
    why: str = ""
    todo: str = ""
    fault: FindingCode | None = None


@dataclass(frozen=True, slots=True)
class RoleSetting:
    """A setting that a role's sessions start with, in this database or in all databases."""

    role: str
    name: str
    value: str
    here: bool


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A server setting in this session, and where it was set."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server's version, clock and settings, and details of the connection to it.

    `role` and `database` are quoted for SQL. A connection over a Unix socket or the loopback
    address counts as local.
    """

    version: str
    number: int
    role: str
    database: str
    settings: Mapping[str, ServerSetting]
    now: datetime
    is_superuser: bool = False
    is_local: bool = True
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """A difference between the schema and this release, and the SQL that fixes it."""

    fault: FindingCode
    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class OverdueMaintenance:
    """Days (today and tomorrow) without a partition, and expired days not dropped yet."""

    missing: Sequence[date]
    past: Sequence[date]


@dataclass(frozen=True, slots=True)
class NotifyQueue:
    """PostgreSQL's notification queue usage (0 to 1), and the oldest visible transaction."""

    usage: float
    pid: int | None = None
    application: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A due job that claims skip because another transaction has locked its row."""

    job_id: JobId
    queue: str
    pid: int
    application: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class VacuumIssues:
    """Tables with autovacuum turned off, and tables with many dead rows and how many they have."""

    off: Sequence[str]
    dead: Mapping[str, int]
