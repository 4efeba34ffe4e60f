"""The database away for a while: the worker continues by itself when it is back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from support.cluster import DURABLE, Cluster
from support.proxy import Proxy
from support.store import install
from support.workers import Bed, soon
from tests.crash import handlers
from tests.crash.conftest import FULL, full_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.crash.conftest import Hire, Tell

DOWN = 20.0 if FULL else 6.0
JOBS = 100

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def server() -> Iterator[Cluster]:
    """A server of its own, to be taken down; nothing is forgiven to it."""
    with Cluster(15, DURABLE) as cluster:
        yield cluster


@pytest.fixture
def bed(server: Cluster, tmp_path: Path) -> Iterator[Bed]:
    """A bed on that server."""
    install(server.url())
    bed = Bed(server.url(), tmp_path)
    yield bed
    bed.close()


def _enqueue(bed: Bed) -> int:
    path = bed.path("jobs")
    short = [handlers.nap.bind(path, 0.2) for _ in range(JOBS // 2)]
    long = [handlers.nap.bind(path, 2.0) for _ in range(JOBS // 4)]
    threads = [handlers.doze.bind(path, 1.0) for _ in range(JOBS // 4)]
    return len(bed.enqueue([*short, *long, *threads]))


def _charged(bed: Bed) -> str:
    rows = bed.fetch(
        "SELECT attempt, losses, count(*) FROM tenure.job_archive GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return ", ".join(
        f"{r['count']} by attempt {r['attempt']} with {r['losses']} losses" for r in rows
    )


@full_only  # At every commit `just prove outages` takes the server away three times.
@pytest.mark.parametrize("how", ["killed", "shut down"])
def test_a_worker_outlives_its_server(
    bed: Bed, server: Cluster, hire: Hire, tell: Tell, how: str
) -> None:
    """The same process continues, and all jobs complete, without a loss. Shows R7 and R18."""
    jobs = _enqueue(bed)
    worker = hire(concurrency=20)
    soon(lambda: bed.ended() > 5, 30, "the worker did not begin")
    children = worker.children
    bed.close()
    if how == "killed":
        server.kill()
        time.sleep(DOWN)
        server.start()
    else:
        server._shut_down()
        time.sleep(DOWN)
        server.start()
    back = time.monotonic()
    soon(lambda: bed.ended() == jobs, 60, "not all completed")

    assert worker.alive
    assert worker.children == children
    assert bed.count("SELECT sum(losses) FROM tenure.job_archive") == 0
    tell(f"{jobs} completed {time.monotonic() - back:.1f} s after it was back: {_charged(bed)}")


def test_a_link_that_fell_silent_ends_by_its_deadline(bed: Bed, hire: Hire, tell: Tell) -> None:
    """Nothing is heard for longer than a lease; then what was held up arrives. Shows R7."""
    jobs = _enqueue(bed)
    with Proxy(bed.url) as proxy:
        worker = hire(proxy.url, concurrency=20)
        soon(lambda: bed.ended() > 5, 30, "the worker did not begin")
        proxy.cut()
        time.sleep(DOWN)
        proxy.restore()
        back = time.monotonic()
        soon(lambda: bed.ended() == jobs, 60, "not all completed")
        assert worker.alive
        tell(f"{jobs} completed {time.monotonic() - back:.1f} s after: {_charged(bed)}")


def test_links_that_stay_silent_are_left_for_new_ones(bed: Bed, hire: Hire, tell: Tell) -> None:
    """As behind a firewall that forgot them: no end is heard, and new connections are fine.
    Renewals are back on a new one in time, so that no lease is lost. Shows R3."""
    held = bed.enqueue([handlers.nap.bind(bed.path("held"), 9.0) for _ in range(10)])
    with Proxy(bed.url) as proxy:
        worker = hire(proxy.url, concurrency=20)
        running = "SELECT count(*) FROM tenure.job WHERE state = 'running'"
        soon(lambda: bed.count(running) == len(held), 30, "not all began")
        time.sleep(1)
        proxy.forget()
        late = bed.enqueue([handlers.brief.bind(bed.path("late"))])
        back = time.monotonic()
        soon(lambda: not bed.job(late[0]).state.is_live, 40, "nothing more was claimed")
        claimed = time.monotonic() - back
        soon(lambda: bed.ended() == len(held) + 1, 60, "not all completed")
        assert worker.alive
        assert set(bed.endings()) == {"completed"}
        tell(f"claimed again after {claimed:.1f} s: {_charged(bed)}")
