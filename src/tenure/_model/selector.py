"""Selectors: the parsed form of the text that pages, routes and commands accept."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tenure._model.job import State


class JobView(StrEnum):
    """A state, or a named subset of a state.

    Subsets can overlap: a retrying job can also be due.
    """

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
        if self in (JobView.SCHEDULED, JobView.DUE, JobView.RETRYING, JobView.HELD):
            return State.QUEUED
        return State.RUNNING if self is JobView.EXPIRED else State(self.value)


class Comparison(StrEnum):
    EQUAL = ""
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range: a number, a point in time, or a duration that means "this long ago"."""

    comparing: Comparison
    value: int | datetime | timedelta


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, by its path, and the accepted values as text."""

    path: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A filter for jobs. A job must match one of the values in every field that is set.

    `id` can't be combined with other fields.
    """

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
        """Return whether the selector filters by arguments, keys or errors.

        Filtering by these requires the payload:read scope.
        """
        return bool(self.key or self.error or self.args)
