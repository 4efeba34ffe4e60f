"""Findings of the doctor, and the facts they are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from tenure._model.ids import JobId


class Level(StrEnum):
    """How bad a finding is. Only a problem fails a command."""

    FINE = "fine"
    WARNING = "warning"
    PROBLEM = "problem"


class FindingCode(StrEnum):
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
    fault: FindingCode | None = None


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of the server as it holds for this session, and where it was set."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """The server: its release, the role and database of this session (ready for SQL), settings,
    its clock."""

    version: str
    number: int
    role: str
    database: str
    settings: Mapping[str, ServerSetting]
    now: datetime


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """Where the schema is not as this release has it, and the SQL that makes it so."""

    fault: FindingCode
    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class OverdueMaintenance:
    """Days for which there is no partition, of today and tomorrow; and days that are still there
    though nobody needs them any longer."""

    missing: Sequence[date]
    past: Sequence[date]


@dataclass(frozen=True, slots=True)
class NotifyQueue:
    """How full the server's queue of notifications is, from 0 to 1, and the oldest open transaction
    of all databases, where there is one and our role may see it."""

    usage: float
    pid: int | None = None
    application: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A due job whose row another transaction has locked, so that claims pass it over."""

    job_id: JobId
    queue: str
    pid: int
    application: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class VacuumIssues:
    """Tables that autovacuum leaves alone; and those with so many dead rows that it does not keep
    up, each with their number."""

    off: Sequence[str]
    dead: Mapping[str, int]
