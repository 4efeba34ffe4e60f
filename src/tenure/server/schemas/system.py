"""Models for leases, the system and the doctor."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from tenure.server.schemas.base import IdOut, ResponseModel, SecondsOut
from tenure.types import FindingCode, HorizonHolderKind, Level


class LeaseOut(ResponseModel):
    """A running job's lease."""

    job_id: IdOut
    queue: str
    task: str
    attempt: int
    max_attempts: int
    worker_id: Annotated[IdOut, Field(description="The worker that holds it.")]
    claimed_at: datetime
    expires_at: datetime
    length: Annotated[
        SecondsOut, Field(description="The lease length at the last renewal, in seconds.")
    ]
    remaining: Annotated[
        SecondsOut,
        Field(description="Seconds left on the database's clock. Negative if expired."),
    ]
    renewals: int
    cancel_requested: bool


class LeaseListOut(ResponseModel):
    """Leases, soonest to expire first."""

    leases: list[LeaseOut]


class SchemaOut(ResponseModel):
    """The database's schema version."""

    version: int
    needed: Annotated[int, Field(description="The version this release needs.")]
    pending: Annotated[list[str], Field(description="Migrations not applied yet.")]
    problem: Annotated[
        str | None, Field(description="Why the schema is incompatible with this release.")
    ]


class DurabilityOut(ResponseModel):
    """PostgreSQL settings that determine what a commit waits for."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standby_names: Annotated[str, Field(description="Standbys that commits wait for.")]
    standbys: Annotated[int, Field(description="Number of connected standbys.")]


class TableOut(ResponseModel):
    """A table with its indexes and partitions. Row counts are PostgreSQL's estimates."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int


class HolderOut(ResponseModel):
    """A transaction, slot or standby that keeps vacuum from removing dead rows."""

    kind: HorizonHolderKind
    name: Annotated[
        str, Field(description="A pid, or the name of a slot or a prepared transaction.")
    ]
    application: str | None
    state: str | None
    lag: Annotated[int, Field(description="Age in transactions.")]
    age: Annotated[SecondsOut | None, Field(description="Age in seconds.")]


class HistoryOut(ResponseModel):
    """A table with one partition per day."""

    name: str
    days: Annotated[int, Field(description="Number of partitions.")]
    first: date
    last: Annotated[date, Field(description="The last day, which is in the future.")]
    bytes: int
    keep_days: Annotated[int, Field(description="Retention in days.")]


class SystemOut(ResponseModel):
    """The release, the database and its storage."""

    release: Annotated[str, Field(description="Tenure's version.")]
    database: Annotated[str, Field(description="The address, without user and password.")]
    database_schema: str
    redis: Annotated[bool, Field(description="Whether Redis carries wakeups.")]
    server: Annotated[str, Field(description="PostgreSQL's version.")]
    role: Annotated[str, Field(description="The role the server connects as.")]
    schema_version: SchemaOut
    durability: DurabilityOut
    tables: list[TableOut]
    holders: list[HolderOut]
    histories: list[HistoryOut]


class FindingOut(ResponseModel):
    """One of the doctor's findings."""

    subject: str
    level: Level
    what: Annotated[str, Field(description="What was found.")]
    why: Annotated[str, Field(description="Why it matters.")]
    todo: Annotated[str, Field(description="What to do.")]
    fault: Annotated[FindingCode | None, Field(description="A stable code. `null` if all is well.")]


class FindingListOut(ResponseModel):
    """Findings, in check order."""

    findings: list[FindingOut]
