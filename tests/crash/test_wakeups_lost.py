"""Wakeups are lost under load: work continues by polling, and wakeups return by themselves.

The workers look for themselves every 6 s only, so that it shows who woke them.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import pytest

from support.daemons import PgBouncer, Redis
from support.workers import Worker, soon
from tenure import Tenure
from tenure.errors import StoreError
from tests.crash import sleepers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.cluster import Cluster
    from support.workers import Bed
    from tests.crash.conftest import Tell

EVERY = 0.1
AWAY = 10.0
# A poll is up to a fifth late; the rest is for a machine that has other things to do.
AT_THE_LATEST = 1.2 * sleepers.POLL + 20
WOKEN = sleepers.POLL / 3
LISTENING = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tenure % wakeups'"
TERMINATE = LISTENING.replace("SELECT pid", "SELECT pg_terminate_backend(pid)")

pytestmark = pytest.mark.timeout(300)


class Load:
    """A program that enqueues all the time, each job until it is told that it is there."""

    def __init__(self, bed: Bed, url: str, redis: str) -> None:
        self._bed = bed
        self._app = Tenure(url, redis=redis)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._at: list[float] = []
        self.slowest = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._app.close()

    def end(self) -> int:
        """Enqueue no more; how many jobs there are."""
        self._stop.set()
        self._thread.join()
        return len(self._at)

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self._enqueue(len(self._at))

    def _enqueue(self, number: int) -> None:
        while True:
            began = time.time()
            call = sleepers.mark.using(key=str(number)).bind(self._bed.path("marks"), number, began)
            try:
                self._app.enqueue_many([call])
            except StoreError:
                time.sleep(EVERY)
                continue
            self.slowest = max(self.slowest, time.time() - began)
            self._at.append(began)
            return

    def waits(self, since: float, until: float) -> list[float]:
        """How long the jobs that were enqueued then have waited, those that ran."""
        file = self._bed.directory / "marks.effects"
        lines = file.read_text().splitlines() if file.exists() else []
        answer = [line.split() for line in lines]
        at = self._at.copy()
        waited = {int(number): float(wait) for _, _, number, wait in answer}
        return [w for n, w in waited.items() if n < len(at) and since <= at[n] < until]

    def woken(self, since: float) -> bool:
        """Whether what was enqueued just now, and since then, did not wait for a poll."""
        waits = self.waits(max(since, time.time() - 2), time.time())
        return len(waits) > 5 and statistics.median(waits) < WOKEN


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Redis]:
    """A Redis that the workers are told of."""
    with Redis() as server:
        monkeypatch.setenv("TENURE_REDIS_URL", server.url)
        yield server


@pytest.fixture
def pgbouncer(cluster: Cluster) -> Iterator[PgBouncer]:
    """A PgBouncer in transaction mode, through which no wakeup comes."""
    with PgBouncer(port=cluster.port, default_pool_size=10) as server:
        yield server


def _through(
    bed: Bed, url: str, redis: str, tmp_path: Path, tell: Tell, lose: Callable[[], None]
) -> list[float]:
    """Lose what carries wakeups and have it back, with a worker under load; what was enqueued
    meanwhile has waited that long. Nothing is lost, and in the end the worker is woken again."""
    with Worker(sleepers.TARGET, url, tmp_path) as worker, Load(bed, url, redis) as load:
        soon(lambda: load.woken(0), 60, "the worker was never woken")
        children = worker.children
        lost_at = time.time()
        lose()
        back_at = time.time()
        soon(lambda: load.woken(back_at), 60, "it was not woken again")
        again = time.time() - back_at
        jobs = load.end()
        soon(lambda: bed.ended() == jobs, 60, "not all completed")
        meanwhile = load.waits(lost_at, back_at) or [0.0]
        assert worker.alive
        assert worker.children == children
        assert bed.count("SELECT coalesce(sum(losses), 0) FROM tenure.job_archive") == 0
        assert max(load.waits(0, time.time())) < AT_THE_LATEST
        tell(
            f"{jobs} jobs; those of the {back_at - lost_at:.0f} s meanwhile waited "
            f"{statistics.median(meanwhile):.2f} s, {max(meanwhile):.2f} s at most; woken again "
            f"{again:.1f} s later; the slowest enqueue took {load.slowest:.2f} s"
        )
        return meanwhile


def test_redis_is_stopped_and_started_again(
    bed: Bed, pgbouncer: PgBouncer, redis: Redis, tmp_path: Path, tell: Tell
) -> None:
    """Behind PgBouncer, where only Redis wakes. Shows R34."""

    def lose() -> None:
        redis.stop()
        time.sleep(AWAY)
        redis.start()

    url = pgbouncer.url(urlsplit(bed.url).path.removeprefix("/"))
    meanwhile = _through(bed, url, redis.url, tmp_path, tell, lose)
    assert max(meanwhile) > WOKEN, "no job waited for a poll: the worker was woken all the same"


def test_pgbouncer_is_restarted(
    bed: Bed, pgbouncer: PgBouncer, redis: Redis, tmp_path: Path, tell: Tell
) -> None:
    """Killed, and away for a while: every connection breaks. Shows R34."""

    def lose() -> None:
        pgbouncer.restart()
        time.sleep(1)
        pgbouncer.stop()
        time.sleep(AWAY / 3)
        pgbouncer.start()

    url = pgbouncer.url(urlsplit(bed.url).path.removeprefix("/"))
    _through(bed, url, redis.url, tmp_path, tell, lose)


def test_connections_that_listen_are_ended_again_and_again(
    bed: Bed, tmp_path: Path, tell: Tell
) -> None:
    """By the server, without a Redis beside it. Shows R34."""

    def lose() -> None:
        until = time.monotonic() + AWAY
        ended = 0
        while time.monotonic() < until:
            ended += len(bed.fetch(TERMINATE))
            time.sleep(EVERY)
        assert ended > 5

    _through(bed, bed.url, "", tmp_path, tell, lose)
