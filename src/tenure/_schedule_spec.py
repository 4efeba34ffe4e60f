"""A schedule's fields, and how each one is parsed.

`@app.schedule`, `admin.schedules`, the HTTP API and the command line all take these fields.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypedDict, cast

from tenure import kinds
from tenure._model.job import NewJob
from tenure._model.schedule import (
    Missed,
    NewSchedule,
    Overlap,
    Policy,
    PolicyChange,
    ScheduleRow,
    Timing,
)
from tenure._rules import schedules as rules
from tenure.config import duration
from tenure.errors import InvalidValue, PayloadError
from tenure.task import (
    EnqueueOptions,
    JobOptions,
    Registered,
    Seconds,
    check_names,
    new_job,
)

DeclaredLiteral = Literal["declared"]
MissedName = Missed | Literal["skip", "latest", "all"]
OverlapName = Overlap | Literal["allow", "skip"]
AnyTask = Registered[..., Any] | str
_DECLARED = "declared"
_TIMES = ("cron", "every", "at")
POLICIES = ("missed", "missed_within", "missed_limit", "jitter")


class _Fields(TypedDict, total=False):
    """Fields that every schedule has. An omitted field, or None, means the default or no change.

    Attributes:
        every: The interval between runs, at least 1 s, counted from the Unix epoch.
        at: Run once, at this aware datetime.
        timezone: The cron expression's time zone (default: `"UTC"`).
        args: The task's arguments by name.
        overlap: `"skip"` creates no job until the earlier one has ended (default: `"allow"`).
    """

    every: Seconds | None
    at: datetime | None
    timezone: str | None
    args: Mapping[str, Any] | None
    overlap: OverlapName | None


class DeclaredFields(_Fields, total=False):
    """Fields for `@app.schedule`. The job's options come from its task.

    Attributes:
        missed: Which missed runs to catch up on: none (`"skip"`), the newest
            (`"latest"`) or all of them (`"all"`) (default: `"latest"`).
        missed_within: How far back to catch up on missed runs (default: 1 day).
        missed_limit: How many missed runs to catch up on, up to 10,000 (default: 100).
        jitter: Delay each job by a stable fraction of this duration, up to 1 day (default: 0).
    """

    missed: MissedName | None
    missed_within: Seconds | None
    missed_limit: int | None
    jitter: Seconds | None


class ScheduleFields(DeclaredFields, JobOptions, total=False):
    """Fields for `admin.schedules.create`, in addition to the job's.

    Attributes:
        cron: A five-field cron expression, or a name such as `"@daily"`.
    """

    cron: str | None


class ScheduleChanges(_Fields, JobOptions, total=False):
    """Fields for `admin.schedules.update`. `"declared"` restores the value from the code.

    Attributes:
        task: Another task, or its name.
        cron: A five-field cron expression, or a name such as `"@daily"`.
        missed: Which missed runs to catch up on: none (`"skip"`), the newest
            (`"latest"`) or `"all"`.
        missed_within: How far back to catch up on missed runs.
        missed_limit: How many missed runs to catch up on.
        jitter: Delay each job by a stable fraction of this duration.
    """

    task: AnyTask | None
    cron: str | None
    missed: MissedName | DeclaredLiteral | None
    missed_within: Seconds | DeclaredLiteral | None
    missed_limit: int | DeclaredLiteral | None
    jitter: Seconds | DeclaredLiteral | None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "missed": partial(rules.word, Missed, what="missed"),
    "missed_within": partial(duration, what="missed_within"),
    "missed_limit": int,
    "overlap": partial(rules.word, Overlap, what="overlap"),
    "jitter": partial(duration, what="jitter"),
}


class ScheduleSpec:
    """The schedule fields that the caller passed."""

    def __init__(self, fields: Mapping[str, object], names: AbstractSet[str]) -> None:
        check_names(fields, names)
        self._given: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }

    def declared(self, name: str, job: NewJob) -> NewSchedule:
        """Return the validated schedule for an existing job definition."""
        new = NewSchedule(
            name=name, timing=self._timing(Timing()), job=job, policy=self._policy(Policy())
        )
        rules.check(new)
        return new

    def new(self, name: str, task: AnyTask) -> NewSchedule:
        """Return the validated schedule for a task."""
        return self.declared(name, _job(task, self._given.get("args", {}), self._options))

    def changed(self, row: ScheduleRow) -> NewSchedule:
        """Return the new definition of an operator-created schedule."""
        self._refuse_nothing(row.name)
        args: Any = self._given.get("args", row.job.args)
        if "task" in self._given:
            job = _job(self._given["task"], args, self._options)
        else:
            made = _job(row.job.task, args, self._options)
            kept = self._options.keys() & {"queue", "priority", "max_attempts"}
            options = {name: getattr(made, name) for name in kept}
            job = replace(row.job, args=made.args, meta=row.job.meta | made.meta, **options)
        new = NewSchedule(
            name=row.name,
            timing=self._timing(row.timing),
            job=job,
            policy=self._policy(row.policy),
        )
        rules.check(new)
        return new

    def policies(self, row: ScheduleRow) -> PolicyChange:
        """Return the operator's changes to the policy of a schedule declared in code."""
        self._refuse_nothing(row.name)
        if others := [name for name in self._given if name not in POLICIES]:
            raise InvalidValue(
                f"schedule {row.name!r} is declared in the code of {row.program!r}; change "
                f"{', '.join(others)} there and deploy. Here you can set missed, missed_within, "
                "missed_limit and jitter, or pause it"
            )
        change = replace(row.set_policy, **self._read())
        rules.check_policy(change)
        return change

    def _refuse_nothing(self, name: str) -> None:
        if not self._given:
            raise InvalidValue(f"no change given for schedule {name!r}; pass at least one field")

    def _timing(self, was: Timing) -> Timing:
        """Return the timing: the new times if any are given, otherwise the old ones."""
        times = {name: self._given.get(name) for name in _TIMES}
        if any(value is not None for value in times.values()):
            every = times["every"]
            was = Timing(
                cron=times["cron"],
                every=None if every is None else duration(every, "every"),
                at=_utc(times["at"]),
                # An interval has no zone, so it drops the previous cron expression's zone.
                zone="UTC" if every is not None else was.zone,
            )
        return replace(was, zone=self._given.get("timezone", was.zone))

    def _policy(self, was: Policy) -> Policy:
        if names := [name for name in POLICIES if self._given.get(name) == _DECLARED]:
            raise InvalidValue(
                f'{", ".join(names)} must be a value, got "declared"; no code declares this '
                "schedule"
            )
        return replace(was, **self._read())

    def _read(self) -> dict[str, Any]:
        """Return the given policies, with None for each policy being reset to the code's value."""
        given = {name: self._given[name] for name in _READ if name in self._given}
        return {n: None if value == _DECLARED else _READ[n](value) for n, value in given.items()}

    @property
    def _options(self) -> EnqueueOptions:
        names = JobOptions.__optional_keys__ & self._given.keys()
        return cast("EnqueueOptions", {name: self._given[name] for name in names})


def _job(task: AnyTask, args: Mapping[str, object], options: EnqueueOptions) -> NewJob:
    """Return the job that each tick enqueues. A registered task checks its arguments."""
    if not isinstance(args, Mapping):
        raise PayloadError(f'args must be a mapping, got {args!r}; write {{"name": "Ada"}}')
    if isinstance(task, Registered):
        named = task.definition.parameters.dump((), dict(args))
        return new_job(task.definition, options, named)
    if not isinstance(task, str):
        raise InvalidValue(f"task must be a task or a task's name, got {task!r}")
    return new_job(kinds.definition(task), options, kinds.arguments(task, args))


def _utc(at: datetime | None) -> datetime | None:
    """Convert to UTC. Return a naive datetime unchanged, because the rules reject it later."""
    if isinstance(at, datetime) and at.tzinfo is not None:
        return at.astimezone(UTC)
    return at


def aware(instant: datetime | None, what: str) -> datetime | None:
    """Return the datetime. Reject a naive one."""
    if instant is not None and instant.tzinfo is None:
        raise InvalidValue(
            f"{what} must have a time zone, got {instant}; write datetime(…, tzinfo=UTC)"
        )
    return instant
