"""A selector: which jobs are meant. Read from the one text that pages, routes and commands take."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.job import State


class JobView(StrEnum):
    """A state of a job, or a part of one under a name of its own. Parts may overlap: what is
    retrying may be due."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    DUE = "due"
    RETRYING = "retrying"
    HELD = "held"
    RUNNING = "running"
    EXPIRED = "expired"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def state(self) -> State:
        """The state that it is, or is a part of."""
        if self in (JobView.SCHEDULED, JobView.DUE, JobView.RETRYING, JobView.HELD):
            return State.QUEUED
        return State.RUNNING if self is JobView.EXPIRED else State(self.value)


class Comparison(StrEnum):
    """How a value is compared."""

    EQUAL = ""
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of a range: of a number, of an instant, or (a duration) of how long ago it was."""

    comparing: Comparison
    value: int | datetime | timedelta


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, by the names that lead to it, and the texts of the values that it may have."""

    path: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which jobs are meant: those that match all that is said; of several values, any. `id` names
    the jobs themselves, and stands alone."""

    state: tuple[JobView, ...] = ()
    queue: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()
    id: tuple[int, ...] = ()
    key: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    args: tuple[Argument, ...] = ()
    created: tuple[Bound, ...] = ()
    due: tuple[Bound, ...] = ()
    ended: tuple[Bound, ...] = ()
    attempt: tuple[Bound, ...] = ()

    @property
    def names_payload(self) -> bool:
        """Whether it asks about what only those may see who may read payloads: arguments, keys and
        the words of errors."""
        return bool(self.key or self.error or self.args)
