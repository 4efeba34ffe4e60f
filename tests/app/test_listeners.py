"""Listeners: checked when registered, told off the caller's path, harmless when they fail."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.processes import wait_for
from tenure import Tenure
from tenure._hooks import delivery
from tenure.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure import JobEvent, WorkerEvent


def greeting(app: Tenure) -> Any:
    """A task of the app's."""

    @app.task(name="hello", queue="mail", max_attempts=4)
    def hello(name: str) -> str:
        return name

    return hello


async def test_enqueued_event_has_the_job(app: Tenure) -> None:
    events: list[JobEvent] = []
    app.on("enqueued")(events.append)

    @app.middleware("enqueue")
    def trace(draft: Any) -> Iterator[None]:
        draft.meta["trace"] = "t"
        yield

    hello = greeting(app)
    handle = hello.using(key="k").enqueue("Ada")
    hello.using(key="k").enqueue("Ada")
    app.close()
    [event] = events
    assert (event.name, event.job_id, event.task, event.queue) == (
        "enqueued",
        handle.id,
        "hello",
        "mail",
    )
    assert (event.state, event.attempt, event.max_attempts, event.key) == ("queued", 0, 4, "k")
    assert (event.meta, event.worker, event.error) == ({"trace": "t"}, None, None)


async def test_unstored_events_are_not_reported(app: Tenure, url: str) -> None:
    events: list[JobEvent] = []
    app.on("enqueued")(events.append)
    hello = greeting(app)
    with pytest.raises(ZeroDivisionError):
        app.enqueue_many(hello.bind(str(1 // (2000 - n))) for n in range(3000))
    app.close()
    assert events == []
    assert len(app.enqueue_many(hello.bind(str(n)) for n in range(3000))) == 3000
    app.close()
    assert len(events) == 3000


async def test_event_over_a_callers_connection_comes_before_the_commit(
    app: Tenure, url: str
) -> None:
    """The outcome of the transaction is not known here; the how-to says so."""
    events: list[JobEvent] = []
    app.on("enqueued")(events.append)
    with psycopg.connect(url) as connection:
        greeting(app).using(connection=connection).enqueue("Ada")
        connection.rollback()
    app.close()
    assert len(events) == 1


async def test_listeners_run_in_order_on_their_own_thread_and_loop(
    app: Tenure,
) -> None:
    events: list[tuple[str, str, int]] = []
    mark: ContextVar[str] = ContextVar("mark", default="none")

    @app.on("enqueued")
    def plain(event: JobEvent) -> None:
        events.append(("plain", mark.get(), threading.get_ident()))
        mark.set("plain was here")

    @app.on("enqueued", "failed")
    async def awaiting(event: JobEvent) -> None:
        await asyncio.sleep(0)
        events.append(("awaiting", mark.get(), threading.get_ident()))

    hello = greeting(app)
    hello.enqueue("Ada")
    await hello.aenqueue("Grace")
    await app.aclose()
    assert [(name, marked) for name, marked, _ in events] == [
        ("plain", "none"),
        ("awaiting", "none"),
    ] * 2
    threads = {thread for _, _, thread in events}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_listener_may_enqueue_in_both_worlds(app: Tenure) -> None:
    hello = greeting(app)
    other = app.task(name="other")(nothing)
    enqueued: list[str] = []

    @app.on("enqueued")
    async def more(event: JobEvent) -> None:
        enqueued.append(event.task)
        if event.task == "hello":
            await other.aenqueue()
            other.enqueue()

    hello.enqueue("Ada")
    assert wait_for(lambda: len(enqueued) == 3, seconds=20)
    assert enqueued == ["hello", "other", "other"]


def nothing() -> None: ...


@pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError])
async def test_a_listener_that_fails_is_logged_and_harms_no_other(
    app: Tenure, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    events: list[JobEvent] = []

    @app.on("enqueued")
    def bad(event: JobEvent) -> None:
        raise error("not today")

    @app.on("enqueued")
    async def worse(event: JobEvent) -> None:
        raise error("not today")

    app.on("enqueued")(events.append)
    hello = greeting(app)
    with caplog.at_level(logging.ERROR, "tenure"):
        hello.enqueue("Ada")
        hello.enqueue("Grace")
        app.close()
    assert len(events) == 2
    assert caplog.text.count("bad raised on event 'enqueued'") == 2
    assert caplog.text.count("worse raised on event 'enqueued'") == 2


async def test_hanging_listener_blocks_nothing_and_excess_is_dropped(
    app: Tenure, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_MOST", 3)
    proceed, begun = threading.Event(), threading.Event()
    events: list[JobEvent] = []

    @app.on("enqueued")
    def slow(event: JobEvent) -> None:
        begun.set()
        proceed.wait(60)
        events.append(event)

    hello = greeting(app)
    hello.enqueue("first")
    assert begun.wait(20)
    for _ in range(5):
        hello.enqueue("more")
    app.hooks.listeners._thread.close(0.01)  # type: ignore[union-attr]
    proceed.set()
    app.close()
    assert len(events) == 4
    assert "3 events are waiting, dropping new ones" in caplog.text
    assert "stopped with 4 events undelivered" in caplog.text


PROGRAM = """
import os, sys
from tenure import Tenure

app = Tenure(sys.argv[1])

@app.task(name="hello")
def hello() -> None: ...

@app.on("enqueued")
def told(event):
    print(os.getpid() == parent, event.task, flush=True)

parent = os.getpid()
hello.enqueue()
if os.fork() == 0:
    app.close()
    hello.enqueue()
    sys.exit(0)
os.wait()
"""


def test_a_program_that_ends_tells_first_and_so_does_one_that_was_forked(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=os.environ,
    )
    assert sorted(done.stdout.splitlines()) == ["False hello", "True hello"], done.stderr


def listener(event: JobEvent | WorkerEvent) -> None: ...


def yielding(event: JobEvent) -> Iterator[None]:
    yield


def none() -> None: ...


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda app: app.on("fialed"), "unknown event 'fialed'; use one of: enqueued, started"),
        (lambda app: app.on("failed", "faild"), "unknown event 'faild'"),
        (lambda app: app.on(listener), 'write @app.on\\("failed"\\)'),
        (lambda app: app.on(), 'write @app.on\\("failed"\\)'),
        (lambda app: app.on("failed")(yielding), "yielding has a yield"),
        (lambda app: app.on("failed")(none), "none must take one argument"),
    ],
)
def test_what_cannot_be_a_listener_is_refused_with_what_to_write(
    act: Callable[[Any], Any], words: str
) -> None:
    with pytest.raises(InvalidValue, match=words):
        act(Tenure("postgresql://"))


def test_a_listener_stays_the_function_that_it_was() -> None:
    assert Tenure("postgresql://").on("failed")(listener) is listener
