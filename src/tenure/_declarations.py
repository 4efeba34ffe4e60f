"""Schedules and rules for notices, as code declares them. The scheduler stores them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenure._model.job import NewJob
from tenure._model.notice import NewNoticeRule
from tenure._rules.arguments import Parameters
from tenure.errors import InvalidValue
from tenure.task import Definition, Registered, new_job

if TYPE_CHECKING:
    from tenure._model.schedule import NewSchedule
    from tenure._schedule_spec import DeclaredFields

_EXAMPLE = '@app.schedule("0 9 * * 1-5", timezone="Europe/Berlin")'


class DeclaredSchedules(Mapping[str, "NewSchedule"]):
    """An app's declared schedules, in declaration order."""

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
        definition = _definition(task, app)
        known_as = definition.name if name is None else name
        job = new_job(definition, {}, _arguments(definition, known_as, fields.get("args")))
        self._add(known_as, job, cron, fields)

    def add_work(
        self, job: NewJob, *, name: str | None, cron: str | None, fields: "DeclaredFields"
    ) -> None:
        """Add a schedule for work of a built-in kind."""
        if name is None:
            raise InvalidValue('a schedule with work= needs a name; write name="nightly"')
        if "args" in fields:
            raise InvalidValue("args has no effect with work=: the work has its arguments; omit it")
        self._add(name, job, cron, fields)

    def _add(self, known_as: str, job: NewJob, cron: str | None, fields: "DeclaredFields") -> None:
        # Imported here because programs without schedules don't need cron expressions or time
        # zones.
        from tenure._schedule_spec import DeclaredFields, ScheduleSpec  # noqa: PLC0415

        spec = ScheduleSpec({**fields, "cron": cron}, DeclaredFields.__optional_keys__ | {"cron"})
        new = spec.declared(known_as, job)
        # Repeating a declaration is harmless. It happens when a module is loaded under two names.
        if self._schedules.setdefault(known_as, new) != new:
            raise InvalidValue(
                f"two schedules are named {known_as!r}, of {self[known_as].job.task} and of "
                f'{job.task}; give one of them another name, as in name="{known_as}-2"'
            )


class DeclaredNotices:
    """An app's declared rules for notices."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[bool, NewNoticeRule]] = {}

    def add(self, rule: NewNoticeRule, *, is_named: bool) -> None:
        # Repeating a declaration is harmless. It happens when a module is loaded under two names.
        if self._rules.setdefault(rule.name, (is_named, rule)) != (is_named, rule):
            raise InvalidValue(
                f"two notice rules are named {rule.name!r}; give one of them another name, as in "
                f'name="{rule.name}-2"'
            )

    def rules(self, program: str) -> list[NewNoticeRule]:
        """Return the rules. A rule without a name has one that begins with the program's."""
        return [
            rule if is_named else replace(rule, name=f"{program}:{rule.name}")
            for is_named, rule in self._rules.values()
        ]


def require_parentheses(cron: object) -> None:
    """Reject `@app.schedule` without parentheses, and a cron expression that isn't a string."""
    if callable(cron):
        raise InvalidValue(f"@app.schedule needs a time; write {_EXAMPLE}, above @app.task")
    if cron is not None and not isinstance(cron, str):
        raise InvalidValue(
            f"cron must be a str, got {cron!r}; write {_EXAMPLE}, or every=3600, or at=datetime(…)"
        )


def _definition(task: object, app: object) -> Definition:
    if not isinstance(task, Registered):
        raise InvalidValue(
            f"{getattr(task, '__qualname__', task)!s} is not a task yet; write @app.schedule(…) "
            "above @app.task"
        )
    if task.app is not app:
        raise InvalidValue(f"{task.name} is a task of another app; use that app's schedule()")
    return task.definition


def _arguments(definition: Definition, name: str, args: Mapping[str, Any] | None) -> dict[str, Any]:
    if args is not None and not isinstance(args, Mapping):
        raise InvalidValue(
            f"args must be a dict of names and values, got {args!r}; write args={{…}}"
        )
    # Don't use the task's own: names defined later in the file aren't known yet, and would stay
    # unresolved.
    parameters = Parameters(definition.function, skip=int(definition.takes_job))
    try:
        return parameters.dump((), args or {})
    except InvalidValue as error:
        raise InvalidValue(
            f"the schedule {name!r} cannot call its task: {error}; write the arguments as in "
            'args={"name": value}'
        ) from None
