"""The audit: who did what, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tenure._model.ids import Json


@dataclass(frozen=True, slots=True)
class By:
    """Who calls an operator's verb, from where, and why."""

    actor: str
    source: str = "python"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One change to one target, as it was recorded in the change's own transaction."""

    id: int
    at: datetime
    actor: str
    source: str
    action: str
    target: str
    reason: str | None
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit, newest first, found among so many that were searched. `next` is below
    which id there is more; None at the end alone."""

    rows: Sequence[AuditRow]
    searched: int
    next: int | None
