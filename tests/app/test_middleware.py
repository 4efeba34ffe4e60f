"""Middleware around enqueue: in every way to enqueue, it sees the job before it is stored."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tenure import Tenure
from tenure.errors import InvalidValue, PayloadError
from tests.app.acts import rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tenure import Draft, Handle, Job

    Enqueue = Callable[[Tenure, str], Awaitable[list[Handle[str]]]]


def greeting(app: Tenure) -> Any:
    """A task of the app's."""

    @app.task(name="hello", queue="mail", priority=7)
    def hello(name: str) -> str:
        return name

    return hello


async def by_enqueue(app: Tenure, url: str) -> list[Handle[str]]:
    return [greeting(app).using(tags=["a"]).enqueue("Ada")]


async def by_aenqueue(app: Tenure, url: str) -> list[Handle[str]]:
    return [await greeting(app).using(tags=["a"]).aenqueue("Ada")]


async def by_many(app: Tenure, url: str) -> list[Handle[str]]:
    call = greeting(app).using(tags=["a"])
    return app.enqueue_many(call.bind("Ada") for _ in range(3))


async def by_amany(app: Tenure, url: str) -> list[Handle[str]]:
    call = greeting(app).using(tags=["a"])
    return await app.aenqueue_many(call.bind("Ada") for _ in range(3))


async def by_connection(app: Tenure, url: str) -> list[Handle[str]]:
    with psycopg.connect(url) as connection:
        return [greeting(app).using(tags=["a"], connection=connection).enqueue("Ada")]


async def by_aconnection(app: Tenure, url: str) -> list[Handle[str]]:
    call = greeting(app).using(tags=["a"])
    async with await psycopg.AsyncConnection.connect(url) as connection:
        return await app.aenqueue_many([call.bind("Ada")], connection=connection)


WAYS = [by_enqueue, by_aenqueue, by_many, by_amany, by_connection, by_aconnection]


@pytest.mark.parametrize("way", WAYS)
async def test_middleware_sees_a_job_before_and_after_it_is_stored(
    app: Tenure, url: str, way: Enqueue
) -> None:
    seen: list[tuple[Any, ...]] = []

    @app.middleware("enqueue")
    def trace(draft: Draft) -> Iterator[None]:
        assert (draft.id, draft.created) == (None, None)
        seen.append((draft.task, draft.queue, draft.priority, draft.key, draft.tags, draft.args))
        draft.meta["trace"] = f"t{len(seen)}"
        yield
        seen.append((draft.id, draft.created))

    handles = await way(app, url)

    count = len(handles)
    assert seen[:count] == [("hello", "mail", 7, None, ["a"], {"name": "Ada"})] * count
    assert sorted(seen[count:]) == sorted((handle.id, True) for handle in handles)
    metas = [row["meta"] for row in rows(url)]
    assert metas == [{"tags": ["a"], "fields": {"trace": f"t{n + 1}"}} for n in range(count)]


@pytest.mark.parametrize("way", WAYS)
async def test_what_middleware_raises_before_the_yield_refuses_the_job(
    app: Tenure, url: str, way: Enqueue
) -> None:
    @app.middleware("enqueue")
    def full(draft: Draft) -> Iterator[None]:
        if draft.task == "hello":
            raise OverflowError("no more mail today")
        yield

    with pytest.raises(OverflowError, match="no more mail today"):
        await way(app, url)
    assert rows(url) == []


async def test_one_call_that_is_refused_refuses_all_of_enqueue_many(app: Tenure, url: str) -> None:
    left: list[str] = []

    @app.middleware("enqueue")
    def not_eve(draft: Draft) -> Iterator[None]:
        if draft.args["name"] == "Eve":
            raise PermissionError
        try:
            yield
        except PermissionError:
            left.append(draft.args["name"])
            raise

    hello = greeting(app)
    names = [*(f"n{n}" for n in range(1500)), "Eve"]
    with pytest.raises(PermissionError):
        app.enqueue_many(hello.bind(name) for name in names)
    assert rows(url) == []
    # Those before it hear of it, the last first.
    assert left == names[-2::-1]


async def test_the_first_that_was_registered_is_the_outermost(app: Tenure, url: str) -> None:
    order: list[str] = []

    def named(name: str) -> None:
        @app.middleware("enqueue")
        def around(draft: Draft) -> Iterator[None]:
            order.append(f"{name} in {draft.meta.get('by')}")
            draft.meta["by"] = name
            yield
            order.append(f"{name} out")

    named("outer")
    named("inner")
    greeting(app).enqueue("Ada")
    assert order == ["outer in None", "inner in outer", "inner out", "outer out"]
    assert rows(url)[0]["meta"] == {"fields": {"by": "inner"}}


@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_open_for_one_of_many_is_not_around_the_next(
    app: Tenure, fails: bool
) -> None:
    """Like spans: each is inside what the caller had open, and not inside its neighbour's."""
    span: ContextVar[str] = ContextVar("span", default="caller")
    parents: list[str] = []
    closed: list[str] = []

    @app.middleware("enqueue")
    def trace(draft: Draft) -> Iterator[None]:
        parents.append(span.get())
        token = span.set(draft.args["name"])
        try:
            yield
        finally:
            closed.append(span.get())
            span.reset(token)

    hello = greeting(app)
    calls = [hello.bind(name) for name in "abc"]
    if fails:
        calls[1] = hello.using(priority=99).bind("b")
        with pytest.raises(InvalidValue):
            app.enqueue_many(calls)
    else:
        app.enqueue_many(calls)
    assert parents == ["caller"] * 3
    assert closed == ["c", "b", "a"]
    hello.enqueue("d")
    assert (parents[-1], closed[-1], span.get()) == ("caller", "d", "caller")


async def test_it_knows_that_a_key_had_a_job_already(app: Tenure) -> None:
    created: list[bool | None] = []

    @app.middleware("enqueue")
    def note(draft: Draft) -> Iterator[None]:
        yield
        created.append(draft.created)

    hello = greeting(app)
    hello.using(key="k").enqueue("Ada")
    hello.using(key="k").enqueue("Ada")
    assert created == [True, False]


@pytest.mark.parametrize("many", [False, True])
async def test_an_error_that_it_swallows_reaches_the_caller_all_the_same(
    app: Tenure, url: str, many: bool
) -> None:
    seen: list[str] = []

    @app.middleware("enqueue")
    def too_wide(draft: Draft) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - that is what it is for
            seen.append(type(error).__name__)

    call = greeting(app).using(priority=99)
    act = (lambda: app.enqueue_many([call.bind("Ada")])) if many else (lambda: call.enqueue("Ada"))
    with pytest.raises(InvalidValue, match=r"priority must be .*, got 99"):
        act()
    assert seen == ["InvalidValue"]


async def test_what_it_notes_must_be_json_within_the_limits(app: Tenure, url: str) -> None:
    @app.middleware("enqueue")
    def noting(draft: Draft) -> Iterator[None]:
        draft.meta["at"] = object()
        yield

    with pytest.raises(PayloadError, match="the meta fields must not contain a object"):
        greeting(app).enqueue("Ada")
    assert rows(url) == []


def plain(draft: Draft) -> None: ...


def two(one: Draft, another: Draft) -> Iterator[None]:
    yield


async def awaiting(draft: Draft) -> AsyncIterator[None]:
    yield


def one(job: Job) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda app: app.middleware("enqueu")(one), 'write @app.middleware\\("enqueue"\\) or'),
        (lambda app: app.middleware(one), 'around must be "enqueue" or "run"'),
        (lambda app: app.middleware("run")(plain), "plain has no yield"),
        (lambda app: app.middleware("run")(two), "two must take one argument"),
        (lambda app: app.middleware("enqueue")(awaiting), "write it as a def with one yield"),
        (lambda app: app.middleware("run", only="def")(awaiting), "cannot wrap a def"),
        (
            lambda app: app.middleware("run", only="sync")(one),
            'only must be "def" or "async", got .sync.',
        ),
        (
            lambda app: app.middleware("enqueue", only="def")(one),
            "only= is for middleware around run",
        ),
        (
            lambda app: app.middleware("run")(contextlib.contextmanager(one)),
            "remove @contextmanager",
        ),
    ],
)
def test_what_cannot_be_middleware_is_refused_with_what_to_write(
    act: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        act(Tenure("postgresql://"))


def test_middleware_stays_the_function_that_it_was() -> None:
    assert Tenure("postgresql://").middleware("run", only="def")(one) is one
