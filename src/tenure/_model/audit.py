"""The audit log: who did what, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tenure._model.ids import Json


@dataclass(frozen=True, slots=True)
class By:
    """Who ran an operator command, from where, and why. `address` is the client's, over HTTP."""

    actor: str
    source: str = "python"
    reason: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One change to one target, recorded in the same transaction as the change."""

    id: int
    at: datetime
    actor: str
    source: str
    action: str
    target: str
    reason: str | None
    before: Json
    after: Json
    address: str | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit log, newest first. `next` is `None` only at the end."""

    rows: Sequence[AuditRow]
    searched: int
    next: int | None
