"""Enqueueing: the row that a call ends in, by task, by options, in both worlds.

Without `from __future__ import annotations`: what annotations name is needed at run time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from support.store import SECOND
from tenure import AsyncJob, Job, Tenure
from tenure._model.job import State
from tenure.errors import TenureError
from tenure.task import Task, time_limit
from tests.app.acts import fetch, row, rows

HOUR = timedelta(hours=1)
Hello = Task[[str], str, str]


@dataclass(frozen=True)
class Point:
    x: int


@pytest.fixture
def hello(app: Tenure) -> Hello:
    @app.task(name="hello")
    def hello(name: str) -> str:
        return f"Hello {name}"

    return hello


async def test_a_job_is_in_the_database_when_enqueue_returns(hello: Hello, url: str) -> None:
    """Shows R18."""
    handle = hello.enqueue("Ada")
    found = row(url, handle.id)
    assert handle.created
    assert (found["task"], found["args"], found["state"]) == ("hello", {"name": "Ada"}, "queued")
    assert (found["queue"], found["priority"], found["held"]) == ("default", 5, False)
    assert (found["max_attempts"], found["max_losses"]) == (3, 3)
    assert found["run_at"] == found["created_at"]
    unsaid = ("key", "key_for", "lease", "target", "meta", "cursor", "progress")
    assert [found[name] for name in unsaid] == [None] * len(unsaid)


async def test_a_job_is_in_the_database_when_aenqueue_returns(hello: Hello, url: str) -> None:
    """Shows R18."""
    handle = await hello.aenqueue("Ada")
    assert handle.created
    assert row(url, handle.id)["args"] == {"name": "Ada"}


async def test_the_handle_is_not_among_the_arguments(app: Tenure, url: str) -> None:
    @app.task
    def works(job: Job, n: int) -> None: ...
    @app.task
    async def waits(job: AsyncJob, n: int) -> None: ...

    works.enqueue(1)
    await works.aenqueue(n=2)
    waits.enqueue(n=3)
    await waits.aenqueue(4)
    assert [each["args"] for each in rows(url)] == [{"n": n} for n in (1, 2, 3, 4)]


async def test_a_task_says_what_its_jobs_are_like(app: Tenure, url: str) -> None:
    """Shows R8."""

    @app.task(
        queue="mail", priority=7, max_attempts=5, max_losses=2, lease=120, timeout=9, expires_in=60
    )
    def reported() -> None: ...

    found = row(url, reported.enqueue().id)
    assert (found["queue"], found["priority"]) == ("mail", 7)
    assert (found["max_attempts"], found["max_losses"]) == (5, 2)
    assert found["lease"] == timedelta(minutes=2)
    assert found["meta"] == {"expires_in": 60.0}


async def test_a_call_says_it_before_its_task(app: Tenure, url: str) -> None:
    """Shows R8."""

    @app.task(queue="mail", priority=7, max_attempts=5, lease=120, timeout=9, expires_in=60)
    def reported() -> None: ...

    call = reported.using(
        queue="slow",
        priority=0,
        max_attempts=1,
        lease=HOUR,
        timeout=30,
        expires_in=HOUR,
        tags=["a", "b"],
        target=500,
    )
    found = row(url, call.enqueue().id)
    assert (found["queue"], found["priority"], found["max_attempts"]) == ("slow", 0, 1)
    assert (found["lease"], found["target"]) == (HOUR, 500)
    assert found["meta"] == {"tags": ["a", "b"], "timeout": 30.0, "expires_in": 3600.0}


async def test_a_call_with_timeout_none_has_no_time_limit(app: Tenure, url: str) -> None:
    @app.task(timeout=9)
    def export() -> None: ...

    unlimited = row(url, export.using(timeout=None, tags=["a"]).enqueue().id)["meta"]
    default = row(url, export.enqueue().id)["meta"]
    assert unlimited == {"tags": ["a"], "timeout": None}
    assert time_limit(export.definition, unlimited) is None
    assert time_limit(export.definition, default) == timedelta(seconds=9)
    assert time_limit(export.definition, {"timeout": 30.0}) == timedelta(seconds=30)


async def test_a_call_with_options_leaves_the_task_as_it_was(hello: Hello, url: str) -> None:
    hello.using(queue="slow", priority=9).enqueue("Ada")
    hello.enqueue("Bob")
    assert [(each["queue"], each["priority"]) for each in rows(url)] == [
        ("slow", 9),
        ("default", 5),
    ]


async def test_a_delay_counts_from_the_databases_time(hello: Hello, url: str) -> None:
    """Shows R24."""
    for delay in (90, 90.0, timedelta(seconds=90)):
        found = row(url, hello.using(delay=delay).enqueue("Ada").id)
        assert found["run_at"] - found["created_at"] == 90 * SECOND


async def test_a_job_may_be_for_an_instant(hello: Hello, url: str) -> None:
    """Shows R24."""
    at = datetime.now(UTC).replace(microsecond=0) + HOUR
    handle = await hello.using(run_at=at).aenqueue("Ada")
    assert row(url, handle.id)["run_at"] == at


async def test_what_was_due_in_the_past_is_due_now(hello: Hello, url: str) -> None:
    """Shows R11."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    for call in (hello.using(run_at=past), hello.using(delay=-90)):
        found = row(url, call.enqueue("Ada").id)
        assert found["run_at"] == found["created_at"]


async def test_a_key_is_kept_for_as_long_as_it_says(hello: Hello, url: str) -> None:
    handle = hello.using(key="hello-ada", key_for=HOUR).enqueue("Ada")
    found = row(url, handle.id)
    assert (found["key"], found["key_for"]) == ("hello-ada", HOUR)
    [key] = fetch(url, "SELECT task, key, job_id FROM tenure.job_key")
    assert key == {"task": "hello", "key": "hello-ada", "job_id": handle.id}


async def test_a_second_enqueue_of_a_key_returns_the_first_job(hello: Hello, url: str) -> None:
    """Shows R17."""
    first = hello.using(key="k").enqueue("Ada")
    second = hello.using(key="k").enqueue("Bob")
    third = await hello.using(key="k").aenqueue("Eve")
    assert (first.created, second.created, third.created) == (True, False, False)
    assert first.id == second.id == third.id
    assert repr(second) == f"Handle({first.id}, created=False)"
    [found] = rows(url)
    assert found["args"] == {"name": "Ada"}


async def test_a_key_is_the_tasks_own(app: Tenure, hello: Hello) -> None:
    """Shows R17."""

    @app.task
    def other() -> None: ...

    one, two = hello.using(key="k").enqueue("Ada"), other.using(key="k").enqueue()
    assert one.created
    assert two.created


async def test_the_handle_sees_the_job_as_it_is_now(hello: Hello) -> None:
    handle = hello.using(key="k", tags=["t"]).enqueue("Ada")
    assert repr(handle) == f"Handle({handle.id})"
    assert handle.state is None
    for seen in (handle.get(), await handle.aget()):
        assert seen is not None
        assert (seen.id, seen.state, seen.task, seen.key) == (
            handle.id,
            State.QUEUED,
            "hello",
            "k",
        )
        assert seen.args == {"name": "Ada"}
        assert seen.meta == {"tags": ["t"]}
    assert handle.state is State.QUEUED


async def test_arguments_are_written_in_their_plain_form(app: Tenure, url: str) -> None:
    @app.task
    def meet(point: Point, ids: list[UUID], at: datetime, *, wait: timedelta) -> None: ...

    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    handle = meet.enqueue(Point(1), [UUID(int=1)], at=at, wait=HOUR)
    assert row(url, handle.id)["args"] == {
        "point": {"x": 1},
        "ids": ["00000000-0000-0000-0000-000000000001"],
        "at": "2026-03-01T12:00:00+00:00",
        "wait": 3600.0,
    }


async def test_a_default_is_not_stored(app: Tenure, url: str) -> None:
    @app.task
    def page(n: int = 1, size: int = 50) -> None: ...

    handle = page.enqueue(size=10)
    assert row(url, handle.id)["args"] == {"size": 10}


async def test_task_option_overrides_the_queue(hello: Hello, url: str) -> None:
    """Shows R13."""
    fetch(
        url,
        "INSERT INTO tenure.queue (name, max_attempts, changed_at) VALUES ('default', 8, now())",
    )
    assert row(url, hello.enqueue("Ada").id)["max_attempts"] == 8
    assert row(url, hello.using(max_attempts=2).enqueue("Ada").id)["max_attempts"] == 2
    assert row(url, hello.using(key="k").enqueue("Ada").id)["max_attempts"] == 8


async def test_an_app_keeps_to_its_schema(url: str) -> None:
    """A schema that is not there is no place to enqueue into."""
    app = Tenure(url, schema="elsewhere")

    @app.task
    def lost() -> None: ...

    with pytest.raises(TenureError, match="elsewhere"):
        lost.enqueue()
    app.close()
    assert rows(url) == []
