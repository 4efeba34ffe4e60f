"""Kinds of work that need no function of yours, such as HTTP requests.

Each kind is a module in this package. It has `handler`, the function that a worker runs, `OPTIONS`,
its task options, `check`, which checks the arguments of an enqueue, and `prepare`, which checks a
worker's configuration when the worker starts. Tenure imports a kind on first use.
"""

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

from tenure._model.ids import Json
from tenure._model.job import KIND_NAMES
from tenure._model.notice import NOTICE_TASK
from tenure._rules.arguments import Parameters
from tenure.config import DEFAULTS, TaskOptions, duration
from tenure.errors import ConfigError, InvalidValue
from tenure.task import Definition, unregistered_task


class WorkKind(NamedTuple):
    """A kind of work, and the task that its jobs have."""

    name: str
    task: str


# Notices are sent by workers that run HTTP work. Only rules make them.
_FURTHER: Mapping[str, Sequence[WorkKind]] = {"http": (WorkKind("notices", NOTICE_TASK),)}
KINDS: Mapping[str, WorkKind] = {name: WorkKind(name, f"tenure.{name}") for name in KIND_NAMES}
TASKS: Mapping[str, WorkKind] = {kind.task: kind for kind in KINDS.values()}
RESERVED: Mapping[str, str] = {
    kind.task: kind.name for kind in (*TASKS.values(), *_FURTHER["http"])
}


class _Module(Protocol):
    OPTIONS: TaskOptions
    handler: Callable[..., Any]

    def check(self, arguments: Mapping[str, Json]) -> None: ...
    def prepare(self) -> None: ...


def check_names(names: Iterable[str], what: str = "kinds") -> Sequence[str]:
    """Return the names without duplicates. Raise InvalidValue for a kind that doesn't exist."""
    known = tuple(dict.fromkeys(names))
    for name in known:
        if name not in KINDS:
            raise InvalidValue(
                f"{what} must be a list of {', '.join(KINDS)}, got {name!r}; write only kinds that "
                "exist"
            )
    return known


def definitions(names: Iterable[str]) -> Sequence[Definition]:
    """Return the tasks of these kinds, for a worker that runs them.

    Raises:
        ConfigError: A kind doesn't exist, its extra isn't installed, or its configuration is
            invalid.
    """
    try:
        known = check_names(names)
    except InvalidValue as error:
        raise ConfigError(str(error)) from None
    for name in known:
        _module(name).prepare()
    served = [kind for name in known for kind in (KINDS[name], *_FURTHER.get(name, ()))]
    return [_definition(kind) for kind in served]


def definition(task: str) -> Definition:
    """Return what is known about a task by its name: the kind's definition, or only the name."""
    kind = TASKS.get(task)
    return unregistered_task(task) if kind is None else _definition(kind)


def arguments(task: str, args: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments of a call by task name. A kind of work checks its own.

    Raises:
        InvalidValue: The arguments are invalid for this kind of work.
    """
    if task == NOTICE_TASK:
        raise InvalidValue(
            f"task must not be {NOTICE_TASK}: only rules make notices; test one with tenure notify "
            "test NAME"
        )
    kind = TASKS.get(task)
    if kind is None:
        return dict(args)
    named = _definition(kind).parameters.dump((), dict(args))
    _module(kind.name).check(named)
    return named


def check_enabled(tasks: Iterable[str], enabled: Json) -> None:
    """Raise InvalidValue if a task belongs to a kind that the installation hasn't enabled."""
    names = enabled if isinstance(enabled, list) else []
    for kind in {TASKS[task].name for task in tasks if task in TASKS}:
        if kind not in names:
            wanted = json.dumps([*names, kind])
            raise InvalidValue(
                f"{kind} work is not enabled in this installation; an operator can enable it: "
                f"tenure setting set enabled_kinds '{wanted}'"
            )


@lru_cache
def _definition(kind: WorkKind) -> Definition:
    module = _module(kind.name)
    options: dict[str, Any] = {
        "queue": kind.name,
        "timeout": DEFAULTS.timeout,
        "stop_within": DEFAULTS.stop_within,
        **module.OPTIONS,
    }
    for each in ("timeout", "stop_within"):
        options[each] = None if options[each] is None else duration(options[each])
    return Definition(
        name=kind.task,
        function=module.handler,
        parameters=Parameters(module.handler, skip=1),
        takes_job=True,
        is_async=True,
        **options,
    )


def _module(name: str) -> _Module:
    return cast("_Module", importlib.import_module(f"tenure.kinds.{name}"))
