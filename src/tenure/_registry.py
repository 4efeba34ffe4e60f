"""An app's tasks by name. They are validated when declared and looked up when a job is claimed."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from tenure import _settings, kinds
from tenure._model.job import PRIORITIES
from tenure._rules import payload
from tenure._rules.arguments import Parameters
from tenure._rules.leasing import check_ttl
from tenure._settings import module_name
from tenure.config import Backoff, Defaults, TaskOptions, duration
from tenure.errors import ConfigError, InvalidValue
from tenure.job import AsyncJob, Job
from tenure.task import Definition

_DURATIONS = frozenset({"timeout", "lease", "stop_within", "expires_in"})


class Registry:
    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._tasks: dict[str, Definition] = {}
        self._served: set[str] = set()

    def __getitem__(self, name: str) -> Definition:
        return self._tasks[name]

    def get(self, name: str) -> Definition | None:
        """Return the task with this name or alias, or None."""
        return self._tasks.get(name)

    @property
    def queues(self) -> Sequence[str]:
        """Return the queues to serve: the tasks' queues, any added ones, and `default`."""
        named = {task.queue for task in self._tasks.values()}
        return sorted({"default"} | named | self._served)

    def serve(self, queues: Iterable[str]) -> None:
        """Also serve these queues, even though no task names them."""
        self._served |= set(queues)

    def add(self, definition: Definition) -> None:
        """Register a task that is already defined, such as a kind of work."""
        self._tasks[definition.name] = definition

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._tasks)

    @property
    def kinds(self) -> Sequence[tuple[str, bool]]:
        return [(task.name, task.is_async) for task in self._tasks.values()]

    def define(self, function: Callable[..., Any], options: TaskOptions) -> Definition:
        """Register a function as a task. Raise InvalidValue if it can't be one."""
        if not inspect.isfunction(function):
            raise InvalidValue(
                f"a task must be a function, got {function!r}; decorate a def or an async def"
            )
        takes_job = _takes_job(function)
        given: dict[str, Any] = {"timeout": self._defaults.timeout, **options}
        known_as = given.pop("name", None) or (
            f"{module_name(function.__module__)}.{function.__qualname__}"
        )
        if given.get("stop_within") is None:
            given["stop_within"] = self._defaults.stop_within
        for name in _DURATIONS & given.keys():
            given[name] = None if given[name] is None else duration(given[name])
        if given.get("memory") is not None:
            given["memory"] = memory_size(given["memory"])
        given["give_up_on"] = _exceptions(given.get("give_up_on", ()))
        aliases = given["aliases"] = tuple(require_sequence(given.get("aliases", ()), "aliases"))
        definition = Definition(
            name=known_as,
            function=function,
            parameters=Parameters(function, skip=1 if takes_job else 0),
            takes_job=takes_job,
            is_async=inspect.iscoroutinefunction(function),
            **given,
        )
        self._check(definition)
        names = (known_as, *aliases)
        for each in names:
            payload.check_name(each, "task")
            if each in kinds.RESERVED:
                raise InvalidValue(
                    f"the task name {each!r} is reserved for {kinds.RESERVED[each]} work; give "
                    f"{_place(function)} another name="
                )
            other = self._tasks.get(each)
            if other is not None and other.function is not function:
                raise InvalidValue(
                    f"two tasks are named {each!r}: {_place(other.function)} and "
                    f"{_place(function)}; give one of them a name="
                )
        self._tasks |= dict.fromkeys(names, definition)
        return definition

    def _check(self, task: Definition) -> None:
        payload.check_name(task.queue, "queue")
        if task.priority not in PRIORITIES:
            raise InvalidValue(f"priority must be 0 to 9 (9 is most urgent), got {task.priority}")
        if task.timeout is not None and task.timeout <= timedelta(0):
            raise InvalidValue(
                f"timeout must be positive, got {task.timeout}; None means no timeout"
            )
        for name, count in (("max_attempts", task.max_attempts), ("max_losses", task.max_losses)):
            payload.check_count(count, name)
        if task.memory is not None and not task.process:
            raise InvalidValue("memory needs process=True: only a process has its own limit")
        if task.on_loss not in ("retry", "fail"):
            raise InvalidValue(f'on_loss must be "retry" or "fail", got {task.on_loss!r}')
        if task.fails_on_loss and task.max_losses is not None:
            raise InvalidValue(
                'max_losses has no effect with on_loss="fail": the first loss is the end; omit it'
            )
        if not isinstance(task.backoff, Backoff | None):
            raise InvalidValue(
                f"backoff must be a Backoff, got {task.backoff!r}; write "
                "backoff=Backoff(base=…) with the seconds after the first failure"
            )
        if task.stop_within < timedelta(0):
            raise InvalidValue(f"stop_within must be 0 or more, got {task.stop_within}")
        if task.expires_in is not None and task.expires_in <= timedelta(0):
            raise InvalidValue(f"expires_in must be positive, got {task.expires_in}")
        if task.lease is not None:
            check_ttl(task.lease, stop_within=task.stop_within, defaults=self._defaults)


def require_sequence(texts: Sequence[str], what: str) -> Sequence[str]:
    """Return the strings. Reject a single string, which would be iterated letter by letter."""
    if isinstance(texts, str):
        raise InvalidValue(
            f"{what} must be a list, got the string {texts!r}; write {what}=[{texts!r}]"
        )
    return texts


def _exceptions(kinds: object) -> tuple[type[BaseException], ...]:
    """Return the `give_up_on` classes. Reject invalid ones now rather than when a job fails."""
    if isinstance(kinds, type):
        raise InvalidValue(
            f"give_up_on must be a tuple, got {kinds.__name__}; write ({kinds.__name__},)"
        )
    if not isinstance(kinds, Iterable):
        raise InvalidValue(f"give_up_on must be a tuple of exception classes, got {kinds!r}")
    classes = tuple(kinds)
    for kind in classes:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidValue(f"give_up_on must contain only exception classes, got {kind!r}")
    return classes


def _takes_job(function: Callable[..., Any]) -> bool:
    """Return whether the first parameter is the job's handle. Reject the wrong kind of handle."""
    parameters = list(inspect.signature(function).parameters.values())
    kind = _resolved(parameters[0].annotation, function) if parameters else None
    if kind not in (Job, AsyncJob):
        return False
    if parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InvalidValue(
            f"{function.__qualname__} takes its handle by name, but it is passed first; "
            f"write: {function.__name__}({parameters[0].name}: {kind.__name__}, …)"
        )
    is_async = inspect.iscoroutinefunction(function)
    if (kind is AsyncJob) is not is_async:
        wanted, form = ("AsyncJob", "async def") if is_async else ("Job", "def")
        raise InvalidValue(
            f"{function.__qualname__} takes {kind.__name__}, but the handle of `{form}` is "
            f"{wanted}; write: {form} {function.__name__}({parameters[0].name}: {wanted}, …)"
        )
    return True


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """Resolve an annotation, even a string whose names exist only for the type checker."""
    if not isinstance(annotation, str):
        return annotation
    names = {"Job": Job, "AsyncJob": AsyncJob}
    first, *rest = annotation.strip("\"' ").split(".")
    known = getattr(function, "__globals__", {})
    if first not in known:
        return names.get(rest[-1] if rest else first)
    value = known[first]
    for part in rest:
        value = getattr(value, part, None)
    return value


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{function.__module__}.{function.__qualname__}{where}"


def memory_size(value: str | int) -> int:
    """Return a task's memory size in bytes. Raise InvalidValue if it is invalid."""
    try:
        size = _settings.size("memory", str(value))
    except ConfigError as error:
        raise InvalidValue(str(error)) from error
    return size or 0
