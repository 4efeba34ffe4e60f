"""Changes to a stored job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tenure._model.ids import JobId, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanges:
    """New values for a queued job or a dead letter. A field that is `None` stays unchanged.

    `args` replaces all arguments, and `tags` replaces all tags.
    """

    args: Mapping[str, Json] | None = None
    priority: int | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    tags: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class EditableJob:
    """A queued job or a dead letter, locked for an edit."""

    id: JobId
    is_queued: bool
    task: str
    args: Json
    priority: int
    run_at: datetime
    max_attempts: int
    meta: Json
