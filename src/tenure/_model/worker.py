"""A worker's presence."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.ids import Json, WorkerId


class WorkerState(StrEnum):
    """What a worker says of itself. "Stale" is a view of an old heartbeat."""

    ACTIVE = "active"
    DRAINING = "draining"
    OFFLINE = "offline"


class Health(StrEnum):
    """How a worker fares as others see it. `stale`: it says it is there, and has not said so
    lately; `idle`: it runs nothing."""

    ACTIVE = "active"
    IDLE = "idle"
    DRAINING = "draining"
    STALE = "stale"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class NewWorker:
    """How a worker introduces itself."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    queues: Sequence[str]
    slots: int
    language: str = "python"


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as the store knows it; `heartbeat_age` is on the database's clock."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    language: str
    queues: Sequence[str]
    slots: int
    running: int
    state: WorkerState
    drain_requested: bool
    started_at: datetime
    last_heartbeat_at: datetime
    heartbeat_age: timedelta
    meta: Json


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The answer to a heartbeat. Not `known`: the worker was forgotten and registers again."""

    known: bool
    drain_requested: bool
