"""The schedules that code declares, by name. Who brings them into the database is the scheduler's
business."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tenure._rules.arguments import Parameters
from tenure.errors import InvalidValue
from tenure.task import Definition, Registered, new_job

if TYPE_CHECKING:
    from tenure._model.schedule import NewSchedule
    from tenure._schedule_spec import DeclaredFields

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
        cron: str | None,
        fields: "DeclaredFields",
    ) -> None:
        """Declare a task's schedule; InvalidValue if it cannot be one."""
        # With a schedule come cron expressions and time zones: programs without need neither.
        from tenure._schedule_spec import DeclaredFields, ScheduleSpec  # noqa: PLC0415

        definition = _definition(task, app)
        known_as = definition.name if name is None else name
        job = new_job(definition, {}, _arguments(definition, known_as, fields.get("args")))
        spec = ScheduleSpec({**fields, "cron": cron}, DeclaredFields.__optional_keys__ | {"cron"})
        new = spec.declared(known_as, job)
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
