"""The task decorator: names, what a task is afterwards, what is refused and with which words."""

from __future__ import annotations

import asyncio
import functools
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Backoff, Tenure
from tenure.config import DEFAULTS
from tenure.errors import InvalidValue
from tests.app.acts import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HERE = __name__


@pytest.fixture
def app() -> Tenure:
    """An app without a database: a decorator needs none."""
    return Tenure("postgresql://nobody@nowhere/nothing")


def plain(n: int = 1, *, unit: str = "m") -> str:
    """Says how far."""
    return f"{n} {unit}"


async def coroutine(n: int) -> int:
    return n + 1


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(InvalidValue) as refused:
        act()
    return str(refused.value)


def line(function: Callable[..., object]) -> str:
    return f"{HERE}.{function.__qualname__} ({__file__}:{function.__code__.co_firstlineno})"


def test_a_task_stays_the_function_that_it_was(app: Tenure) -> None:
    task = app.task(plain)
    assert task(2, unit="km") == "2 km"
    assert task.__wrapped__ is plain
    assert (task.__name__, task.__qualname__, task.__module__) == ("plain", "plain", HERE)
    assert task.__doc__ == "Says how far."
    assert inspect.signature(task) == inspect.signature(plain)
    assert repr(task) == f"<task {HERE}.plain>"


def test_a_coroutine_function_stays_one_to_call(app: Tenure) -> None:
    task = app.task(queue="math")(coroutine)
    assert asyncio.run(task(1)) == 2
    assert task.definition.is_async


def test_a_task_that_raises_raises_where_it_is_called(app: Tenure) -> None:
    @app.task
    def broken() -> None:
        raise LookupError("as a plain function would")

    with pytest.raises(LookupError):
        broken()


def test_task_name_defaults_to_its_module_and_function(app: Tenure) -> None:
    def inner() -> None: ...

    assert app.task(plain).name == f"{HERE}.plain"
    assert app.task(inner).name == (
        f"{HERE}.test_task_name_defaults_to_its_module_and_function.<locals>.inner"
    )
    assert app.task(name="shop.import")(coroutine).name == "shop.import"
    assert app.tasks["shop.import"].function is coroutine
    assert app.tasks.get("shop.export") is None


PROGRAM = """
from tenure import Tenure
app = Tenure()
@app.task
def hello(): ...
print(hello.name)
"""


@pytest.mark.parametrize(
    ("file", "start", "name"),
    [
        ("shop/jobs.py", ["shop/jobs.py"], "jobs.hello"),
        ("shop/jobs.py", ["-m", "shop.jobs"], "shop.jobs.hello"),
        ("shop/__main__.py", ["-m", "shop"], "shop.hello"),
        ("shop/jobs.py", ["-c", "import shop.jobs"], "shop.jobs.hello"),
    ],
)
def test_a_task_of_the_program_that_is_run_is_named_as_others_import_it(
    tmp_path: Path, file: str, start: list[str], name: str
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / file).write_text(PROGRAM)
    assert run(tmp_path, *start).stdout == f"{name}\n"


def test_a_task_answers_to_its_old_names_too(app: Tenure) -> None:
    task = app.task(name="new", aliases=["old", "older"])(plain)
    assert app.tasks.names == ["new", "old", "older"]
    assert app.tasks["older"] is app.tasks["new"]
    assert task.bind().job.task == "new"


def test_two_tasks_of_one_name_are_refused_with_both_places(app: Tenure) -> None:
    app.task(name="same")(plain)
    assert refusal(lambda: app.task(name="same")(coroutine)) == (
        f"two tasks are named 'same': {line(plain)} and {line(coroutine)}; give one of them a name="
    )
    assert app.tasks["same"].function is plain


def test_an_alias_that_is_taken_is_refused_and_leaves_nothing_behind(app: Tenure) -> None:
    app.task(name="first", aliases=["old"])(plain)
    assert "two tasks are named 'old'" in refusal(
        lambda: app.task(name="second", aliases=["old"])(coroutine)
    )
    assert app.tasks.names == ["first", "old"]


def test_one_function_may_be_decorated_again(app: Tenure) -> None:
    app.task(name="plain", queue="a")(plain)
    app.task(name="plain", queue="b")(plain)
    assert app.tasks["plain"].queue == "b"


def test_apps_do_not_know_of_each_others_tasks(app: Tenure) -> None:
    other = Tenure()
    app.task(name="same")(plain)
    other.task(name="same")(coroutine)
    assert (app.tasks["same"].function, other.tasks["same"].function) == (plain, coroutine)


@pytest.mark.parametrize("name", ["", "two words", "-x", "ü", "x" * 201])
def test_a_name_that_could_not_be_typed_everywhere_is_refused(app: Tenure, name: str) -> None:
    if name:
        assert "task name must be" in refusal(lambda: app.task(name=name)(plain))
    assert "task name must be" in refusal(lambda: app.task(aliases=[name])(plain))
    assert "queue name must be" in refusal(lambda: app.task(queue=name)(plain))


@pytest.mark.parametrize(
    "thing",
    [len, functools.partial(plain), type("Thing", (), {}), "plain", 3],
    ids=["builtin", "partial", "class", "text", "number"],
)
def test_only_a_function_can_be_a_task(app: Tenure, thing: Any) -> None:
    assert refusal(lambda: app.task(thing)).endswith("; decorate a def or an async def")


def test_task_cannot_be_decorated_again(app: Tenure) -> None:
    task: Any = app.task(plain)
    assert "a task must be a function" in refusal(lambda: app.task(task))


def test_any_number_of_arguments_is_refused_at_decoration(app: Tenure) -> None:
    def add(*numbers: int) -> None: ...

    assert refusal(lambda: app.task(add)).endswith("take a list instead")


def test_what_the_decorator_says_is_kept(app: Tenure) -> None:
    backoff = Backoff(base=timedelta(seconds=10))
    task = app.task(
        queue="mail",
        priority=7,
        max_attempts=5,
        max_losses=2,
        timeout=60,
        lease=timedelta(minutes=2),
        stop_within=1.5,
        backoff=backoff,
        give_up_on=(LookupError,),
        expires_in=3600,
    )(plain)
    answer = task.definition
    assert (answer.queue, answer.priority, answer.max_attempts, answer.max_losses) == (
        "mail",
        7,
        5,
        2,
    )
    assert (answer.timeout, answer.lease) == (timedelta(minutes=1), timedelta(minutes=2))
    assert (answer.stop_within, answer.expires_in) == (timedelta(seconds=1.5), timedelta(hours=1))
    assert (answer.backoff, answer.give_up_on) == (backoff, (LookupError,))


def test_exceptions_to_give_up_on_may_be_any_sequence(app: Tenure) -> None:
    task = app.task(give_up_on=[LookupError, ValueError])(plain)
    assert task.definition.give_up_on == (LookupError, ValueError)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"backoff": 5}, "backoff must be a Backoff, got 5; write backoff=Backoff(base=…)"),
        (
            {"give_up_on": ValueError},
            "give_up_on must be a tuple, got ValueError; write (ValueError,)",
        ),
        ({"give_up_on": 5}, "give_up_on must be a tuple of exception classes, got 5"),
        (
            {"give_up_on": ["OSError"]},
            "give_up_on must contain only exception classes, got 'OSError'",
        ),
        (
            {"give_up_on": (int,)},
            "give_up_on must contain only exception classes, got <class 'int'>",
        ),
        ({"max_attempts": "5"}, "max_attempts must be an int from 1 to 32,767, got '5'"),
        ({"max_losses": 2.5}, "max_losses must be an int from 1 to 32,767, got 2.5"),
    ],
)
def test_what_could_not_be_judged_by_later_is_refused_at_decoration(
    app: Tenure, given: dict[str, Any], why: str
) -> None:
    """A failure would find it only when the handler has ended."""
    assert refusal(lambda: app.task(**given)(plain)).startswith(why)


def test_a_task_that_says_nothing_has_the_defaults() -> None:
    app = Tenure(defaults=DEFAULTS.scaled(0.5))
    answer = app.task(plain).definition
    assert (answer.queue, answer.priority) == ("default", 5)
    assert (answer.max_attempts, answer.lease, answer.expires_in) == (None, None, None)
    assert answer.timeout == timedelta(seconds=300)
    assert answer.stop_within == timedelta(seconds=1)


def test_no_timeout_must_be_written(app: Tenure) -> None:
    """Shows R19."""
    assert app.task(timeout=None)(plain).definition.timeout is None


@pytest.mark.parametrize("timeout", [0, -1, timedelta(0)])
def test_a_timeout_that_is_over_at_once_is_refused(app: Tenure, timeout: float) -> None:
    assert refusal(lambda: app.task(timeout=timeout)(plain)).endswith("None means no timeout")


def test_a_lease_too_short_to_be_renewed_or_too_long_is_refused(app: Tenure) -> None:
    """Shows R8."""
    assert app.task(lease=6.1)(plain).definition.lease == timedelta(seconds=6.1)
    assert "choose a longer lease or a shorter stop_within" in refusal(
        lambda: app.task(lease=6)(plain)
    )
    assert app.task(lease=6, stop_within=1)(plain).definition.lease == timedelta(seconds=6)
    assert "keeps a short lease and renews it" in refusal(
        lambda: app.task(lease=timedelta(days=2))(plain)
    )


def test_a_lease_is_measured_by_the_apps_own_constants() -> None:
    """Shows R8."""
    quick = Tenure(defaults=DEFAULTS.scaled(0.1))
    assert quick.task(lease=0.7)(plain).definition.lease == timedelta(seconds=0.7)
    assert "lease must be longer" in refusal(lambda: quick.task(lease=0.5)(plain))


@pytest.mark.parametrize("priority", [-1, 10])
def test_a_priority_beyond_the_lanes_is_refused(app: Tenure, priority: int) -> None:
    assert refusal(lambda: app.task(priority=priority)(plain)).endswith(f"got {priority}")


@pytest.mark.parametrize(
    "given", [{"max_attempts": 0}, {"max_losses": 0}, {"expires_in": 0}, {"stop_within": -1}]
)
def test_a_number_that_no_job_could_live_with_is_refused_at_decoration(
    app: Tenure, given: dict[str, Any]
) -> None:
    """And not when it is enqueued, or when a worker meets it."""
    [name] = given
    assert name in refusal(lambda: app.task(**given)(plain))


def test_the_queues_of_an_app_are_those_that_its_tasks_name(app: Tenure) -> None:
    assert app.tasks.queues == ["default"]
    app.task(queue="mail")(plain)
    app.task(queue="blue")(coroutine)
    assert app.tasks.queues == ["blue", "default", "mail"]


@pytest.mark.parametrize("option", ["aliases", "imports"])
def test_one_text_in_place_of_several_is_refused(app: Tenure, option: str) -> None:
    """Text is a sequence of texts to Python and to type checkers: its letters."""
    act: Callable[[], object] = (
        (lambda: app.task(aliases="old")(plain))
        if option == "aliases"
        else (lambda: Tenure(imports="shop.tasks"))
    )
    assert option in refusal(act)


@pytest.mark.parametrize(
    ("given", "size"),
    [("1GiB", 2**30), ("512MiB", 2**29), ("1.5 gib", 3 * 2**29), ("64K", 2**16), (4096, 4096)],
)
def test_the_memory_of_a_process_is_a_size(app: Tenure, given: str | int, size: int) -> None:
    app.task(process=True, memory=given)(plain)
    assert app.tasks[f"{HERE}.plain"].memory == size


@pytest.mark.parametrize("given", ["much", "", 0, -1, "1TiB"])
def test_invalid_memory_size_is_refused(app: Tenure, given: str | int) -> None:
    reported = refusal(lambda: app.task(process=True, memory=given)(plain))
    assert reported.startswith("memory must be a memory size, got")


def test_a_limit_of_memory_needs_a_process(app: Tenure) -> None:
    assert "needs process=True" in refusal(lambda: app.task(memory="1GiB")(plain))
