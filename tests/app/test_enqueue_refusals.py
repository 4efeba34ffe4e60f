"""What enqueue refuses: before anything is sent, and with what to do instead.

Without `from __future__ import annotations`: what annotations name is needed at run time.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tenure import Tenure
from tenure.errors import InvalidValue, PayloadError, SchemaTooOld
from tenure.task import Task
from tests.app.acts import Apps, rows

Hello = Task[[str], str, str]


@pytest.fixture
def app(apps: Apps, untouched: str) -> Tenure:
    return apps(untouched)


@pytest.fixture
def hello(app: Tenure) -> Hello:
    @app.task(name="hello")
    def hello(name: str) -> str:
        return f"Hello {name}"

    return hello


class Other:
    """Something that JSON does not have."""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"queue": "two words"}, "queue name must be"),
        ({"queue": ""}, "queue name must be"),
        ({"priority": 10}, "priority must be 0 to 9"),
        ({"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)}, "give run_at or delay"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at must have a time zone"),  # noqa: DTZ001 - the point
        ({"run_at": "2030-01-01"}, "run_at must be a datetime, got '2030-01-01'"),
        (
            {"run_at": datetime(2130, 1, 1, tzinfo=UTC), "expires_in": 60},
            "the job would never run",
        ),
        ({"key": 5}, "the key must be a str, got 5; write '5'"),
        ({"queue": 5}, "queue name must be a str, got 5"),
        ({"target": "x"}, "target must be an int from 1 to 2,147,483,647, got 'x'"),
        ({"max_attempts": "3"}, "max_attempts must be an int from 1 to 32,767, got '3'"),
        ({"key": ""}, "1 to 400"),
        ({"key": "k" * 401}, "1 to 400"),
        ({"key_for": 60}, "key_for needs a key"),
        ({"max_attempts": 0}, "max_attempts must be 1 to 32,767"),
        ({"lease": 1}, "lease must be longer, got 1 s"),
        ({"lease": 0}, "lease"),
        ({"lease": timedelta(days=2)}, "lease must be at most 1 day"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"target": 0}, "target must be 1 to"),
        ({"expires_in": 0}, "expires_in"),
        ({"expires_in": -60}, "expires_in"),
        ({"delay": 60, "expires_in": 60}, "the job would never run"),
        ({"tags": "urgent"}, "tags"),
    ],
    ids=str,
)
async def test_an_option_out_of_bounds_is_refused_and_nothing_is_enqueued(
    hello: Hello, untouched: str, options: dict[str, Any], why: str
) -> None:
    before = len(rows(untouched))
    with pytest.raises(InvalidValue, match=why):
        hello.using(**options).enqueue("Ada")
    with pytest.raises(InvalidValue, match=why):
        await hello.using(**options).aenqueue("Ada")
    assert len(rows(untouched)) == before


async def test_a_lease_is_measured_by_the_tasks_own_time_to_stop(app: Tenure) -> None:
    """A lease of 5 s that must be given up 4 s before its end is refused. Shows R8."""

    @app.task(stop_within=4)
    def slow_to_stop() -> None: ...

    with pytest.raises(InvalidValue, match="stop_within"):
        slow_to_stop.using(lease=5).enqueue()


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'name'"),
        (("Ada", "Bob"), {}, "too many positional arguments"),
        ((), {"nmae": "Ada"}, "got an unexpected keyword argument 'nmae'"),
        (("Ada",), {"n": 1}, "unexpected keyword argument 'n'"),
    ],
)
async def test_a_call_that_does_not_fit_is_refused_with_the_signature(
    args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> None:
    """Before the database is asked, which is not there."""
    app = Tenure("postgresql://nobody@nowhere/nothing")

    @app.task
    def hello(name: str) -> str:
        return f"Hello {name}"

    text = rf"hello\(name: str\) -> str cannot be called so: .*{why}"
    with pytest.raises(InvalidValue, match=text):
        hello.enqueue(*args, **kwargs)
    with pytest.raises(InvalidValue, match=text):
        await hello.aenqueue(*args, **kwargs)
    with pytest.raises(InvalidValue, match=text):
        hello.bind(*args, **kwargs)


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"x", "must not contain a bytes, which JSON does not have"),
        ({1, 2}, "must not contain a set, which JSON does not have"),
        (Other(), "must not contain a Other, which JSON does not have"),
        (float("nan"), "JSON does not have; pass None"),
        (2**63, "beyond 64 bits; pass it as a string"),
        ("a\x00b", "must not contain NUL"),
        ("\ud800", "lone surrogate"),
        ({1: "a"}, "must have string keys, got 1"),
        ("x" * 300_000, "store the data elsewhere and pass a reference to it"),
        (endless(), "flatten them"),
    ],
    ids=["bytes", "set", "object", "nan", "int", "nul", "surrogate", "key", "size", "loop"],
)
async def test_an_argument_that_cannot_be_stored_is_refused_with_what_to_do(
    app: Tenure, untouched: str, value: Any, why: str
) -> None:
    @app.task
    def take(value: Any) -> None: ...

    before = len(rows(untouched))
    with pytest.raises(PayloadError, match=why):
        take.enqueue(value)
    with pytest.raises(PayloadError, match=why):
        await take.aenqueue({"deep": [value]})
    assert len(rows(untouched)) == before


async def test_a_database_that_was_not_migrated_names_the_command_to_run(
    empty_database: str,
) -> None:
    """The most likely first mistake: a program enqueues before anybody has migrated."""
    app = Tenure(empty_database)

    @app.task
    def hello(name: str) -> None: ...

    with pytest.raises(SchemaTooOld, match="run: tenure db migrate"):
        hello.enqueue("Ada")
    with pytest.raises(SchemaTooOld, match="run: tenure db migrate"):
        await hello.aenqueue("Ada")
    with (
        psycopg.connect(empty_database) as connection,
        pytest.raises(SchemaTooOld, match="run: tenure db migrate"),
    ):
        hello.using(connection=connection).enqueue("Ada")
    app.close()
    await app.aclose()
