"""Leases, what the installation stands on and what the doctor finds, over the wire."""

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from tenure.server.schemas.base import IdOut, ResponseModel, SecondsOut
from tenure.types import FindingCode, HorizonHolderKind, Level


class LeaseOut(ResponseModel):
    """The lease of a running job. `length` is what it had after its last renewal, `remaining` what
    is left of that by the database's clock, negative if it is over: in seconds."""

    job_id: IdOut
    queue: str
    task: str
    attempt: int
    max_attempts: int
    worker_id: IdOut
    claimed_at: datetime
    expires_at: datetime
    length: SecondsOut
    remaining: SecondsOut
    renewals: int
    cancel_requested: bool


class LeaseListOut(ResponseModel):
    """Leases, those that end first before others."""

    leases: list[LeaseOut]


class SchemaOut(ResponseModel):
    """The database's schema beside this release; `problem` says why they do not fit, if so."""

    version: int
    needed: int
    pending: list[str]
    problem: str | None


class DurabilityOut(ResponseModel):
    """What a commit waits for: the disk, and the standbys that `standby_names` names."""

    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    standby_names: str
    standbys: int


class TableOut(ResponseModel):
    """One table, its indexes and partitions with it; rows as the server estimates them."""

    name: str
    bytes: int
    live_rows: int
    dead_rows: int


class HolderOut(ResponseModel):
    """Who keeps dead rows from being removed; `name` is a pid, a slot's or a prepared transaction's
    name. `lag` is in transactions, `age` in seconds."""

    kind: HorizonHolderKind
    name: str
    application: str | None
    state: str | None
    lag: int
    age: SecondsOut | None


class HistoryOut(ResponseModel):
    """A table with a partition for each day; the last ones are ahead of today."""

    name: str
    days: int
    first: date
    last: date
    bytes: int
    keep_days: int


class SystemOut(ResponseModel):
    """What the installation stands on. Addresses are told without user and password."""

    release: str
    database: str
    database_schema: str
    redis: bool
    server: Annotated[str, Field(description="PostgreSQL's version.")]
    role: str
    schema_version: SchemaOut
    durability: DurabilityOut
    tables: list[TableOut]
    holders: list[HolderOut]
    histories: list[HistoryOut]


class FindingOut(ResponseModel):
    """What the doctor found; where it is not fine, why it matters and what to do. `fault` says it
    to a program."""

    subject: str
    level: Level
    what: str
    why: str
    todo: str
    fault: FindingCode | None


class FindingListOut(ResponseModel):
    """Findings, in the order of the examination."""

    findings: list[FindingOut]
