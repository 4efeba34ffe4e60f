"""The fields of a schedule: the one list of them, and how each is read.

`@app.schedule`, `admin.schedules`, the HTTP API and the command line all take these fields.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, TypedDict, cast

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
    unregistered_task,
)

DeclaredLiteral = Literal["declared"]
MissedName = Missed | Literal["skip", "latest", "all"]
OverlapName = Overlap | Literal["allow", "skip"]
AnyTask = Registered[..., Any] | str
_DECLARED = "declared"
_TIMES = ("cron", "every", "at")
POLICIES = ("missed", "missed_within", "missed_limit", "jitter")


class _Fields(TypedDict, total=False):
    """The fields that every schedule takes. One that is omitted or None has its default, or stays
    as it is."""

    every: Seconds | None
    at: datetime | None
    timezone: str | None
    args: Mapping[str, Any] | None
    overlap: OverlapName | None


class DeclaredFields(_Fields, total=False):
    """The fields of a schedule that code declares; its job has the options of its task."""

    missed: MissedName | None
    missed_within: Seconds | None
    missed_limit: int | None
    jitter: Seconds | None


class ScheduleFields(DeclaredFields, JobOptions, total=False):
    """The fields of a schedule that an operator creates."""

    cron: str | None


class ScheduleChanges(_Fields, JobOptions, total=False):
    """The fields that an operator changes. `declared` gives one back to the code."""

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
    """The fields of a schedule that a caller has given, of these names."""

    def __init__(self, fields: Mapping[str, object], names: AbstractSet[str]) -> None:
        check_names(fields, names)
        self._given: dict[str, Any] = {
            name: value for name, value in fields.items() if value is not None
        }

    def declared(self, name: str, job: NewJob) -> NewSchedule:
        """Return the checked schedule of a job that is made already."""
        new = NewSchedule(
            name=name, timing=self._timing(Timing()), job=job, policy=self._policy(Policy())
        )
        rules.check(new)
        return new

    def new(self, name: str, task: AnyTask) -> NewSchedule:
        """Return the checked schedule of a task."""
        return self.declared(name, _job(task, self._given.get("args", {}), self._options))

    def changed(self, row: ScheduleRow) -> NewSchedule:
        """Return the definition of a schedule that was made at run time, with these changes."""
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
        """Return the operator's policy for a schedule that code declares, with these changes."""
        self._refuse_nothing(row.name)
        if others := [name for name in self._given if name not in POLICIES]:
            raise InvalidValue(
                f"{row.name!r} is declared by program {row.program!r}, whose code owns its "
                f"{', '.join(others)}; change that in the code, and deploy it: an operator sets "
                "missed, missed_within, missed_limit and jitter, and may pause it"
            )
        change = replace(row.set_policy, **self._read())
        rules.check_policy(change)
        return change

    def _refuse_nothing(self, name: str) -> None:
        if not self._given:
            raise InvalidValue(f"nothing is said that {name!r} should change; name what, and how")

    def _timing(self, was: Timing) -> Timing:
        """The times as they were, unless others are given, which replace them."""
        times = {name: self._given.get(name) for name in _TIMES}
        if any(value is not None for value in times.values()):
            every = times["every"]
            was = Timing(
                cron=times["cron"],
                every=None if every is None else duration(every, "every"),
                at=_utc(times["at"]),
                # An interval has no zone; what had one before is not refused for it.
                zone="UTC" if every is not None else was.zone,
            )
        return replace(was, zone=self._given.get("timezone", was.zone))

    def _policy(self, was: Policy) -> Policy:
        if names := [name for name in POLICIES if self._given.get(name) == _DECLARED]:
            raise InvalidValue(
                f"no code declares the {', '.join(names)} of this schedule; say a value"
            )
        return replace(was, **self._read())

    def _read(self) -> dict[str, Any]:
        """The policies that are given; None for one that is given back to the code."""
        given = {name: self._given[name] for name in _READ if name in self._given}
        return {n: None if value == _DECLARED else _READ[n](value) for n, value in given.items()}

    @property
    def _options(self) -> EnqueueOptions:
        names = JobOptions.__optional_keys__ & self._given.keys()
        return cast("EnqueueOptions", {name: self._given[name] for name in names})


def _job(task: AnyTask, args: Mapping[str, object], options: EnqueueOptions) -> NewJob:
    """What each tick enqueues. The arguments of a registered task are checked against it."""
    if not isinstance(args, Mapping):
        raise PayloadError('the arguments are no object; name each one, as in {"name": "Ada"}')
    if isinstance(task, Registered):
        named = task.definition.parameters.dump((), dict(args))
        return new_job(task.definition, options, named)
    if not isinstance(task, str):
        raise InvalidValue(f"{task!r} is no task; pass what @app.task made, or a task's name")
    return new_job(unregistered_task(task), options, dict(args))


def _utc(at: datetime | None) -> datetime | None:
    """The instant in UTC; one without a zone as it is, for the rules to refuse."""
    if isinstance(at, datetime) and at.tzinfo is not None:
        return at.astimezone(UTC)
    return at


def aware(instant: datetime | None, what: str) -> datetime | None:
    """The instant; one without a zone is refused, for it could be any of many."""
    if instant is not None and instant.tzinfo is None:
        raise InvalidValue(f"{what} has no time zone; attach one, as in datetime(…, tzinfo=UTC)")
    return instant
