"""Which tasks there are, by name: what a decorator said is checked here, and found again."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from tenure import _settings
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
    """The tasks of one app."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._tasks: dict[str, Definition] = {}
        self._served: set[str] = set()

    def __getitem__(self, name: str) -> Definition:
        return self._tasks[name]

    def get(self, name: str) -> Definition | None:
        """The task of this name or alias, or None."""
        return self._tasks.get(name)

    @property
    def queues(self) -> Sequence[str]:
        """The queues that tasks name or that are served besides, `default` among them."""
        named = {task.queue for task in self._tasks.values()}
        return sorted({"default"} | named | self._served)

    def serve(self, queues: Iterable[str]) -> None:
        """Have a worker serve these queues too, which no task names by itself."""
        self._served |= set(queues)

    @property
    def names(self) -> Sequence[str]:
        """All names and aliases."""
        return sorted(self._tasks)

    @property
    def kinds(self) -> Sequence[tuple[str, bool]]:
        """The name of every task, and whether it is an `async def`."""
        return [(task.name, task.is_async) for task in self._tasks.values()]

    def define(self, function: Callable[..., Any], options: TaskOptions) -> Definition:
        """Register a function under its name and aliases; InvalidValue if it cannot be a task."""
        if not inspect.isfunction(function):
            raise InvalidValue(f"{function!r} is no function; decorate a def or an async def")
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
            other = self._tasks.get(each)
            if other is not None and other.function is not function:
                raise InvalidValue(
                    f"there are two tasks named {each!r}: {_place(other.function)} and "
                    f"{_place(function)}; give one of them a name="
                )
        self._tasks |= dict.fromkeys(names, definition)
        return definition

    def _check(self, task: Definition) -> None:
        payload.check_name(task.queue, "queue")
        if task.priority not in PRIORITIES:
            raise InvalidValue(f"priority {task.priority} is not within 0 to 9; 9 is most urgent")
        if task.timeout is not None and task.timeout <= timedelta(0):
            raise InvalidValue(
                f"a timeout of {task.timeout} ends before it begins; None is for none"
            )
        for name, count in (("max_attempts", task.max_attempts), ("max_losses", task.max_losses)):
            payload.check_count(count, name)
        if task.memory is not None and not task.process:
            raise InvalidValue("memory needs process=True: only a process has a limit of its own")
        if task.on_loss not in ("retry", "fail"):
            raise InvalidValue(f'on_loss must be "retry" or "fail", got {task.on_loss!r}')
        if task.fails_on_loss and task.max_losses is not None:
            raise InvalidValue(
                'max_losses has no effect with on_loss="fail": the first loss is the end; omit it'
            )
        if not isinstance(task.backoff, Backoff | None):
            raise InvalidValue(
                f"backoff is {task.backoff!r}, which is no Backoff; "
                "write backoff=Backoff(base=…) with the seconds after the first failure"
            )
        if task.stop_within < timedelta(0):
            raise InvalidValue(f"stop_within is {task.stop_within}; it cannot be negative")
        if task.expires_in is not None and task.expires_in <= timedelta(0):
            raise InvalidValue(f"expires_in is {task.expires_in}; the job would never run")
        if task.lease is not None:
            check_ttl(task.lease, stop_within=task.stop_within, defaults=self._defaults)


def require_sequence(texts: Sequence[str], what: str) -> Sequence[str]:
    """The texts; one text in their place, whose letters they would be, is refused."""
    if isinstance(texts, str):
        raise InvalidValue(f"{what} are several: write {what}=[{texts!r}]")
    return texts


def _exceptions(kinds: object) -> tuple[type[BaseException], ...]:
    """What `give_up_on` names; refused now, for a failure later could not be judged by it."""
    if isinstance(kinds, type):
        raise InvalidValue(f"give_up_on are several: write give_up_on=({kinds.__name__},)")
    if not isinstance(kinds, Iterable):
        raise InvalidValue(f"give_up_on is {kinds!r}; write a tuple of exception classes")
    found = tuple(kinds)
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidValue(
                f"give_up_on has {kind!r}, which is no class of exceptions; name classes only"
            )
    return found


def _takes_job(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is the handle; the wrong kind of handle is refused."""
    parameters = list(inspect.signature(function).parameters.values())
    kind = _resolved(parameters[0].annotation, function) if parameters else None
    if kind not in (Job, AsyncJob):
        return False
    if parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InvalidValue(
            f"{function.__qualname__} takes its handle by name, and it is passed first; "
            f"write: {function.__name__}({parameters[0].name}: {kind.__name__}, …)"
        )
    is_async = inspect.iscoroutinefunction(function)
    if (kind is AsyncJob) is not is_async:
        wanted, form = ("AsyncJob", "async def") if is_async else ("Job", "def")
        raise InvalidValue(
            f"{function.__qualname__} takes {kind.__name__}, and the handle in a plain {form} is "
            f"{wanted}; write: {form} {function.__name__}({parameters[0].name}: {wanted}, …)"
        )
    return True


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """The annotation, also where it is text whose names are known to the type checker only."""
    if not isinstance(annotation, str):
        return annotation
    names = {"Job": Job, "AsyncJob": AsyncJob}
    first, *rest = annotation.strip("\"' ").split(".")
    known = getattr(function, "__globals__", {})
    if first not in known:
        return names.get(rest[-1] if rest else first)
    found = known[first]
    for part in rest:
        found = getattr(found, part, None)
    return found


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return f"{function.__module__}.{function.__qualname__}{where}"


def memory_size(said: str | int) -> int:
    """The bytes of a size that a task names; InvalidValue if it is none."""
    try:
        size = _settings.size("memory", str(said))
    except ConfigError as error:
        raise InvalidValue(str(error)) from error
    return size or 0
