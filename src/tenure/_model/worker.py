"""Workers as the store knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.ids import Json, WorkerId


class WorkerState(StrEnum):
    """A worker's own state. "Stale" isn't stored: it is derived from an old heartbeat."""

    ACTIVE = "active"
    DRAINING = "draining"
    OFFLINE = "offline"


class Health(StrEnum):
    """A worker's state as others see it. `stale`: no recent heartbeat. `idle`: no running jobs."""

    ACTIVE = "active"
    IDLE = "idle"
    DRAINING = "draining"
    STALE = "stale"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A worker to register.

    `listed` names the queues to show in lists even if they contain no jobs (`None`: all of them).
    """

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    queues: Sequence[str]
    slots: int
    language: str = "python"
    listed: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A stored worker. `heartbeat_age` is by the database's clock."""

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
    """The result of a heartbeat.

    If `known` is False, the worker's row was pruned, and the worker must register again.
    """

    known: bool
    drain_requested: bool
