"""What a doctor looks at: the server's settings, rights, the schema beside what it should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from tenure._model.finding import Fault
from tenure._model.ids import JobId


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of the server as it holds for this session, and where it was set."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Condition:
    """The server: its release, the role and database of this session (ready for SQL), settings,
    its clock."""

    version: str
    number: int
    role: str
    database: str
    settings: Mapping[str, ServerSetting]
    now: datetime


@dataclass(frozen=True, slots=True)
class Drift:
    """Where the schema is not as this release has it, and the SQL that makes it so."""

    fault: Fault
    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class LateUpkeep:
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
class Unkept:
    """Tables that autovacuum leaves alone; and those with so many dead rows that it does not keep
    up, each with their number."""

    off: Sequence[str]
    dead: Mapping[str, int]
