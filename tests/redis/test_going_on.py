"""Workers that are woken by Redis, and everything that works without it."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from redis import Redis as Client

from support.daemons import Redis
from support.processes import wait_for
from tenure import Tenure
from tenure.admin import State
from tests.redis.conftest import WOKEN_WITHIN
from tests.timing import median

if TYPE_CHECKING:
    from support.store import Database
    from tests.redis.conftest import Apps, Ear

# Nothing answers there.
NOWHERE = "redis://127.0.0.1:1/0"


async def _run_one(app: Tenure) -> float:
    """Enqueue a job once the worker sleeps; how long it took until its end."""

    @app.task(name=f"work-{time.monotonic_ns()}")
    async def work() -> None:
        ended.set()

    ended = asyncio.Event()
    began = time.monotonic()
    await work.aenqueue()
    async with asyncio.timeout(WOKEN_WITHIN):
        await ended.wait()
    return time.monotonic() - began


async def _subscribed(redis: Redis) -> None:
    """Return once a worker listens at this Redis."""
    with Client.from_url(redis.url, decode_responses=True) as client:

        def heard() -> bool:
            return bool(client.pubsub_numsub("tenure:0:tenure")[0][1])

        assert await asyncio.to_thread(wait_for, heard, 20)


async def test_a_worker_that_cannot_listen_is_woken_by_redis(apps: Apps, redis: Redis) -> None:
    """It would look by itself after 40 s only. Shows R34."""
    app = apps(redis.url)
    async with app.run():
        await _subscribed(redis)
        await asyncio.sleep(1)
        assert await _run_one(app) < WOKEN_WITHIN


async def test_a_worker_hears_postgresql_too_while_redis_is_away(apps: Apps) -> None:
    """Shows R34."""
    app = apps(NOWHERE, listen=True)
    async with app.run():
        await asyncio.sleep(2)
        assert await _run_one(app) < WOKEN_WITHIN


async def test_a_worker_without_redis_and_without_listen_polls(db: Database) -> None:
    """Shows R34."""
    app = Tenure(db.url, redis=NOWHERE, listen=False)
    async with app.run():
        await asyncio.sleep(1)
        assert await _run_one(app) < WOKEN_WITHIN
    app.close()
    await app.aclose()


async def test_a_worker_is_woken_again_when_redis_is_back(
    apps: Apps, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """It has said once that Redis was away, however often it was tried. Shows R34."""
    app = apps(redis.url)
    with caplog.at_level(logging.INFO, "tenure"):
        async with app.run():
            await _subscribed(redis)
            redis.stop()
            await asyncio.sleep(3)
            redis.start()
            await _subscribed(redis)
            assert await _run_one(app) < WOKEN_WITHIN
    output = [r.getMessage() for r in caplog.records if r.getMessage().startswith("wakeups: ")]
    assert len(output) == 2
    assert output[0].startswith("wakeups: Redis is not responding")
    assert output[1] == "wakeups: listening again"


async def test_what_listens_hears_that_it_was_away(ear: Ear, redis: Redis) -> None:
    """What was rung meanwhile was not heard: the first word after is for every queue."""
    redis.restart()
    assert await ear.next() == ""


def test_an_enqueue_does_not_wait_for_a_redis_that_is_away(db: Database) -> None:
    """Nor for one that accepts and never answers. Shows R34."""
    with Redis() as silent:
        silent.freeze()
        for url in (NOWHERE, silent.url):
            app = Tenure(db.url, redis=url)
            work = app.task(name="work")(_work)
            work.enqueue()
            began = time.monotonic()
            for _ in range(50):
                work.enqueue()
            assert time.monotonic() - began < 5
            assert len(app.admin.jobs.list(State.QUEUED, count=1000).jobs) % 51 == 0
            app.close()


def _work() -> None:
    """Nothing."""


SCRIPT = """
import sys, time
from tenure import Tenure
app = Tenure()

@app.task(name="work", queue="mail")
def work(): ...

work.enqueue()
assert "redis" not in sys.modules or {redis!r}
time.sleep({pause})
work.using(queue="last").enqueue()
ended = time.monotonic()
import atexit
atexit.register(lambda: print(time.monotonic() - ended))
"""


def _program(db: Database, redis: str, pause: float) -> float:
    """Run a program that enqueues, waits, enqueues and ends; how long its end took, in seconds."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(redis=redis, pause=pause)],
        env=os.environ | {"TENURE_DATABASE_URL": db.url, "TENURE_REDIS_URL": redis},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr
    return float(done.stdout)


def test_without_a_redis_configured_its_client_is_not_imported(db: Database) -> None:
    _program(db, "", 0)


async def test_a_program_that_ends_has_its_last_word_published(
    ear: Ear, redis: Redis, db: Database
) -> None:
    await asyncio.to_thread(_program, db, redis.url, 3)
    heard = {await ear.next(), await ear.next()}
    assert heard == {"mail", "last"}


@pytest.mark.timing
@pytest.mark.parametrize("pause", [0, 2])
def test_a_program_that_ends_does_not_wait_for_a_redis_that_is_away(
    db: Database, pause: float
) -> None:
    """Shows R34."""
    assert median(lambda: _program(db, NOWHERE, pause)) < 2
