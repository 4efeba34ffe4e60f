"""The schedules that code declares, by name. Who brings them into the database is the scheduler's
business."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from tenure._rules.arguments import Parameters
from tenure.config import duration
from tenure.errors import InvalidValue
from tenure.task import Definition, Options, Registered, Seconds, new_job

if TYPE_CHECKING:
    from tenure._model.schedule import NewSchedule

MissedName = Literal["skip", "latest", "all"]
OverlapName = Literal["allow", "skip"]
_EXAMPLE = '@app.schedule("0 9 * * 1-5", timezone="Europe/Berlin")'


class DeclaredSchedules(Mapping[str, "NewSchedule"]):
    """The declared schedules of one app, in the order of their declaration."""

    def __init__(self) -> None:
        self._schedules: dict[str, NewSchedule] = {}

    def __getitem__(self, name: str) -> "NewSchedule":
        return self._schedules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schedules)

    def __len__(self) -> int:
        return len(self._schedules)

    def add(
        self,
        task: object,
        *,
        app: object,
        name: str | None,
        args: Mapping[str, Any] | None,
        cron: str | None,
        every: Seconds | None,
        at: datetime | None,
        timezone: str,
        missed: str,
        missed_within: Seconds,
        missed_most: int,
        overlap: str,
        jitter: Seconds,
    ) -> None:
        """Declare a task's schedule; InvalidValue if it cannot be one."""
        # With a schedule come cron expressions and time zones: programs without need neither.
        from tenure._model import schedule as model  # noqa: PLC0415
        from tenure._rules import schedules as rules  # noqa: PLC0415

        definition = _definition(task, app)
        known_as = definition.name if name is None else name
        new = model.NewSchedule(
            name=known_as,
            timing=model.Timing(
                cron=cron,
                every=None if every is None else duration(every, "every"),
                at=_utc(at),
                zone=timezone,
            ),
            job=new_job(definition, Options(), _arguments(definition, known_as, args)),
            policy=model.Policy(
                missed=rules.word(model.Missed, missed, "missed"),
                missed_within=duration(missed_within, "missed_within"),
                missed_most=missed_most,
                overlap=rules.word(model.Overlap, overlap, "overlap"),
                jitter=duration(jitter, "jitter"),
            ),
        )
        rules.check(new)
        # The same once more, as of a module that is loaded under two names, changes nothing.
        if self._schedules.setdefault(known_as, new) != new:
            raise InvalidValue(
                f"there are two schedules named {known_as!r}, of {self[known_as].job.task} and of "
                f"{definition.name}; give one of them a name of its own, as in "
                f'name="{known_as}-2"'
            )


def require_parentheses(cron: object) -> None:
    """Refuse `@app.schedule` without parentheses, and a time that is no text."""
    if callable(cron):
        raise InvalidValue(f"a schedule says when: write {_EXAMPLE}, above @app.task")
    if cron is not None and not isinstance(cron, str):
        raise InvalidValue(
            f"{cron!r} is no cron expression; write {_EXAMPLE}, or every=3600, or at=datetime(…)"
        )


def _definition(task: object, app: object) -> Definition:
    if not isinstance(task, Registered):
        raise InvalidValue(
            f"{getattr(task, '__qualname__', task)!s} is no task yet; write @app.schedule(…) above "
            "@app.task, so that it comes after it"
        )
    if task.app is not app:
        raise InvalidValue(
            f"{task.name} is a task of another app; write the schedule with the app of its task"
        )
    return task.definition


def _arguments(definition: Definition, name: str, args: Mapping[str, Any] | None) -> dict[str, Any]:
    if args is not None and not isinstance(args, Mapping):
        raise InvalidValue(f"args are by name: write args={{…}} and not {args!r}")
    # Not the task's own: names that stand further below are not known yet, and must not stay so.
    parameters = Parameters(definition.function, skip=int(definition.takes_job))
    try:
        return parameters.dump((), args or {})
    except InvalidValue as error:
        raise InvalidValue(
            f"the schedule {name!r} cannot call its task: {error}; write them as in "
            'args={"name": value}'
        ) from None


def _utc(at: datetime | None) -> datetime | None:
    """The instant in UTC; one without a zone as it is, for the rules to refuse."""
    if isinstance(at, datetime) and at.tzinfo is not None:
        return at.astimezone(UTC)
    return at
