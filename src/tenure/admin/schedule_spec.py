"""The fields of a schedule as a caller gives them, and previews."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from tenure._declarations import MissedName, OverlapName
from tenure._model.job import NewJob
from tenure._model.schedule import (
    ClockChange,
    Missed,
    NewSchedule,
    Overlap,
    Policy,
    PolicyChange,
    ScheduleRow,
    ScheduleState,
    Timing,
)
from tenure._rules import cron as cron_rules
from tenure._rules import schedules as rules
from tenure._rules import timing
from tenure._rules.schedules import due_at, is_paused
from tenure._rules.time_zones import zone_named
from tenure.admin.jobs import unregistered_task
from tenure.config import duration
from tenure.errors import InvalidValue, PayloadError
from tenure.task import Options, Registered, Seconds, new_job

DeclaredLiteral = Literal["declared"]
MissedWord = Missed | MissedName
OverlapWord = Overlap | OverlapName
AnyTask = Registered[..., Any] | str
_DECLARED = "declared"
_POLICIES = ("missed", "missed_within", "missed_most", "jitter")
_TIMES = ("cron", "every", "at")
_OPTIONS = ("queue", "priority", "max_attempts", "timeout", "expires_in", "tags")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """What a caller says of a schedule; None is nothing said. `declared` gives a policy back to
    the code that declares the schedule."""

    task: AnyTask | None = None
    cron: str | None = None
    every: Seconds | None = None
    at: datetime | None = None
    timezone: str | None = None
    args: Mapping[str, object] | None = None
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    timeout: Seconds | None = None
    expires_in: Seconds | None = None
    tags: Sequence[str] | None = None
    missed: MissedWord | DeclaredLiteral | None = None
    missed_within: Seconds | DeclaredLiteral | None = None
    missed_most: int | DeclaredLiteral | None = None
    overlap: OverlapWord | None = None
    jitter: Seconds | DeclaredLiteral | None = None

    def new(self, name: str, task: AnyTask) -> NewSchedule:
        """The schedule that is asked for."""
        timing = self._timing(Timing())
        job = _job(task, self.args or {}, self._options())
        return NewSchedule(name=name, timing=timing, job=job, policy=self._policy(Policy()))

    def changed(self, row: ScheduleRow) -> NewSchedule:
        """The definition of a schedule that was made at run time, with what is said here."""
        self._refuse_nothing(row.name)
        if self.task is None:
            job = self._job(row.job)
        else:
            args = row.job.args if self.args is None else self.args
            job = _job(self.task, args, self._options())
        return NewSchedule(
            name=row.name,
            timing=self._timing(row.timing),
            job=job,
            policy=self._policy(row.policy),
        )

    def policies(self, row: ScheduleRow) -> PolicyChange:
        """What holds over the policy of a schedule that code declares, with what is said here."""
        self._refuse_nothing(row.name)
        if others := [each for each in self._names() if each not in _POLICIES]:
            raise InvalidValue(
                f"{row.name!r} is declared by program {row.program!r}, whose code owns its "
                f"{', '.join(others)}; change that in the code, and deploy it: an operator sets "
                "missed, missed_within, missed_most and jitter, and may pause it"
            )
        kept = row.set_policy
        return PolicyChange(
            missed=_set(self.missed, kept.missed, _missed),
            missed_within=_set(
                self.missed_within, kept.missed_within, partial(duration, what="missed_within")
            ),
            missed_most=_set(self.missed_most, kept.missed_most, int),
            jitter=_set(self.jitter, kept.jitter, partial(duration, what="jitter")),
        )

    def _names(self) -> list[str]:
        return [name for name in self.__slots__ if getattr(self, name) is not None]

    def _refuse_nothing(self, name: str) -> None:
        if not self._names():
            raise InvalidValue(f"nothing is said that {name!r} should change; name what, and how")

    def _timing(self, was: Timing) -> Timing:
        """The times as they were, unless others are given, which replace them."""
        if any(getattr(self, name) is not None for name in _TIMES):
            was = Timing(
                cron=self.cron,
                every=None if self.every is None else duration(self.every, "every"),
                at=self.at,
                # An interval has no zone; what had one before is not refused for it.
                zone="UTC" if self.every is not None else was.zone,
            )
        return was if self.timezone is None else replace(was, zone=self.timezone)

    def _policy(self, was: Policy) -> Policy:
        if given := [name for name in _POLICIES if getattr(self, name) == _DECLARED]:
            raise InvalidValue(
                f"no code declares the {', '.join(given)} of this schedule; say a value"
            )
        return replace(
            was,
            missed=_set(self.missed, was.missed, _missed),
            missed_within=_set(
                self.missed_within, was.missed_within, partial(duration, what="missed_within")
            ),
            missed_most=_set(self.missed_most, was.missed_most, int),
            overlap=_set(self.overlap, was.overlap, _overlap),
            jitter=_set(self.jitter, was.jitter, partial(duration, what="jitter")),
        )

    def _options(self) -> Options:
        said = {name: getattr(self, name) for name in _OPTIONS}
        return Options(**{name: value for name, value in said.items() if value is not None})

    def _job(self, was: NewJob) -> NewJob:
        """The job as it was, with the options and arguments that are given."""
        made = _job(was.task, was.args if self.args is None else self.args, self._options())
        given = {name for name in _OPTIONS if getattr(self, name) is not None}
        said = {name: getattr(made, name) for name in given & {"queue", "priority", "max_attempts"}}
        return replace(was, args=made.args, meta=was.meta | made.meta, **said)


def _job(task: AnyTask, args: Mapping[str, object], options: Options) -> NewJob:
    """What each tick enqueues. The arguments of a registered task are checked against it."""
    if not isinstance(args, Mapping):
        raise PayloadError('the arguments are no object; name each one, as in {"name": "Ada"}')
    if isinstance(task, Registered):
        named = task.definition.parameters.dump((), dict(args))
        return new_job(task.definition, options, named)
    if not isinstance(task, str):
        raise InvalidValue(f"{task!r} is no task; pass what @app.task made, or a task's name")
    return new_job(unregistered_task(task), options, dict(args))


def _set(said: Any, was: Any, read: Any) -> Any:
    """What is said, as what it is; what was, if nothing is; None for what is given back."""
    if said is None:
        return was
    return None if said == _DECLARED else read(said)


def _missed(said: str) -> Missed:
    return rules.word(Missed, said, "missed")


def _overlap(said: str) -> Overlap:
    return rules.word(Overlap, said, "overlap")


def aware(instant: datetime | None, what: str) -> datetime | None:
    """The instant; one without a zone is refused, for it could be any of many."""
    if instant is not None and instant.tzinfo is None:
        raise InvalidValue(f"{what} has no time zone; attach one, as in datetime(…, tzinfo=UTC)")
    return instant


_LONGEST_PREVIEW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is to come: its tick in UTC and in the schedule's zone; when its job is due; the
    change of the clock on its day, if there is one, and whether it moved the tick; and whether
    the tick falls into a pause."""

    fire_at: datetime
    local: datetime
    run_at: datetime
    shift: ClockChange | None = None
    moved: bool = False
    paused: bool = False


def preview_timing(
    *,
    cron: str | None = None,
    every: Seconds | None = None,
    at: datetime | None = None,
    timezone: str = "UTC",
    count: int = 10,
    after: datetime | None = None,
) -> Sequence[Run]:
    """The next runs of a timing that no schedule has yet, after an instant or now by the clock
    here. Asks no database."""
    lasts = None if every is None else duration(every, "every")
    wanted = Timing(cron=cron, every=lasts, at=at, zone=timezone)
    timing.check(wanted)
    return [_run(wanted, each) for each in _upcoming(wanted, after or datetime.now(UTC), count)]


def runs(row: ScheduleRow, after: datetime, count: int) -> Sequence[Run]:
    """The next runs of a schedule after an instant; none of one that its program dropped."""
    if row.state is ScheduleState.RETIRED:
        return []
    return [_run(row.timing, each, row) for each in _upcoming(row.timing, after, count)]


def _upcoming(wanted: Timing, after: datetime, count: int) -> Sequence[datetime]:
    if not 1 <= count <= _LONGEST_PREVIEW:
        raise InvalidValue(f"a preview of {count} runs is not within 1 to {_LONGEST_PREVIEW:,}")
    aware(after, "after")
    return timing.upcoming(wanted, after.astimezone(UTC), count)


def _run(of: Timing, fire_at: datetime, row: ScheduleRow | None = None) -> Run:
    shift = cron_rules.shift_on(of.zone, fire_at)
    return Run(
        fire_at=fire_at,
        local=fire_at.astimezone(zone_named(of.zone)),
        run_at=fire_at if row is None else due_at(row.name, fire_at, row.in_force.jitter),
        shift=shift,
        moved=shift is not None and cron_rules.moved(of, fire_at),
        paused=row is not None and is_paused(row, fire_at),
    )
