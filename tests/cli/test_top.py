"""`tenure top` in a real terminal: what it shows, what its keys do, how it ends."""

from __future__ import annotations

import re
import signal
import sys
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import psycopg
import pytest

from support.cluster import Cluster
from support.race_helpers import ended
from support.store import install, lanes
from support.terminals import Terminal
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker, WorkerState
from tenure.admin import By, connect
from tests.cli.conftest import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZES = [(80, 24), (200, 50)]
BY = By("ada")
ME = WorkerId(UUID(int=1))
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])(?:;\d+)*m")


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server of its own, which is taken away; with some jobs, waiting, running and done."""
    with Cluster(15, in_memory=True) as cluster:
        install(cluster.url())
        fill(cluster.url())
        yield cluster


def fill(url: str) -> None:
    with connect(url) as admin:
        store = admin._store
        for queue, count in (("mail", 7), ("bulk", 3)):
            for _ in range(count):
                admin.jobs.enqueue("shop.send", {}, BY, queue=queue)
        admin._run(store.workers.register(NewWorker(ME, "worker-1", "web", 1, "1", ["mail"], 10)))
        admin._run(store.workers.heartbeat(ME, state=WorkerState.ACTIVE, running=2))
        # Its last beat is fresh for as long as this suite runs.
        with psycopg.connect(url) as connection:
            connection.execute(
                "UPDATE tenure.worker SET last_heartbeat_at = now() + interval '1 hour'"
            )
        ttl = timedelta(hours=1)
        claimed = admin._run(store.leases.claim(lanes("mail"), count=4, worker=ME, ttl=ttl)).jobs
        admin._run(store.settlement.settle([ended(each.lease) for each in claimed[:2]]))


def top(server: Cluster, size: tuple[int, int], **environment: str) -> Terminal:
    """The command in a terminal of this size."""
    words = ("top", "--interval", "0.2", "--by", "ana", "--database-url", server.url())
    return Terminal(
        [sys.executable, "-m", "tenure", *words],
        width=size[0],
        height=size[1],
        environment={"COLUMNS": "80", **environment},
    )


@pytest.mark.parametrize("size", SIZES)
def test_it_shows_the_installation_and_pauses_a_queue_with_a_reason_for_the_audit(
    server: Cluster, size: tuple[int, int]
) -> None:
    """Shows R35."""
    with top(server, size) as terminal:
        shown = terminal.shows("recently completed")
        assert terminal.height >= len(terminal.screen)
        assert max(map(len, terminal.screen)) == size[0]
        labels, values = shown.splitlines()[1:3]
        for label in ("due", "running", "oldest due", "retrying", "done today", "failed 24h"):
            assert label in labels
        numbers = values.split()
        assert (numbers[:2], numbers[3:]) == (["6", "2"], ["0", "2", "0", "1/1"])
        assert "Queue bulk has 3 due jobs and no live worker." in shown
        assert re.search(r"worker-1 web +active +█···· 2/10", shown)
        assert re.search(r"\d+ shop\.send .* 1 ", shown)
        assert COLOUR.search(terminal.painted)

        terminal.shows("> bulk")
        terminal.press("j")
        terminal.shows("> mail")
        terminal.press("p")
        terminal.type("failover of mx")
        terminal.shows("pause mail; reason: failover of mx")
        terminal.press("Enter")
        terminal.shows("Queue mail is paused by ana (failover of mx)")
        terminal.press("p")
        terminal.shows("resume mail; reason:")
        terminal.type("over")
        terminal.press("Enter")
        terminal.shows("queue mail is resumed")
        terminal.press("p")
        terminal.shows("pause mail; reason:")
        terminal.press("Escape")
        terminal.shows("q quit")
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.restored
    with connect(server.url()) as admin:
        resumed, paused = admin.audit.list("queue:mail", count=2)
    assert (paused.action, paused.actor, paused.source) == ("queue.pause", "ana", "cli")
    assert (paused.reason, resumed.action, resumed.reason) == (
        *("failover of mx", "queue.resume", "over"),
    )


def test_without_colours_queues_are_sorted_and_a_job_is_opened(server: Cluster) -> None:
    """Shows R35."""
    with top(server, (80, 24), NO_COLOR="1") as terminal:
        terminal.shows("queues by name")
        assert not COLOUR.search(terminal.painted)
        terminal.press("s")
        shown = terminal.shows("queues by due")
        assert shown.index("mail  ") < shown.index("bulk  ") or "> bulk" in shown
        terminal.press("Down", "Up", "o")
        terminal.type("x1")
        terminal.press("Enter")
        shown = terminal.shows("The job has ended: completed")
        assert "job 1 shop.send in queue mail" in shown
        terminal.press("x")
        terminal.shows("queues by due")
        terminal.resize(100, 30)
        terminal.until(lambda shown: max(map(len, shown.splitlines())) == 100)
        terminal.press("o")
        terminal.type("999999")
        terminal.press("Enter")
        terminal.shows("Job 999999 does not exist")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_the_terminal_is_given_back(server: Cluster, number: int) -> None:
    with top(server, (80, 24)) as terminal:
        terminal.shows("recently completed")
        terminal.signal(number)
        assert terminal.ended() == 130
        assert terminal.restored


def test_lost_database_is_shown_and_keys_still_work(
    server: Cluster,
) -> None:
    with top(server, (80, 24)) as terminal:
        terminal.shows("queues by name")
        server.kill()
        try:
            terminal.shows("the database did not answer, for ")
            terminal.press("s")
            terminal.shows("queues by due")
        finally:
            server.start()
        terminal.shows("every 0.2 s")
        terminal.press("q")
        assert terminal.ended() == 0


def test_one_frame_is_printed_for_a_log(server: Cluster, tmp_path: Path) -> None:
    """Shows R35."""
    tenure = Command(tmp_path, url=server.url())
    done = tenure("top", "--once")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "! Queue bulk has 3 due jobs and no live worker." in done.out
    found = tenure("top", "--once", "--json").json
    assert found["numbers"]["due"] == {"value": 6, "more": False}
    assert found["attention"][0]["target"] == {"kind": "queue", "name": "bulk"}


def test_one_frame_is_as_wide_as_the_terminal(server: Cluster) -> None:
    words = ("top", "--once", "--database-url", server.url())
    with Terminal([sys.executable, "-m", "tenure", *words], width=60, height=40) as terminal:
        assert terminal.ended() == 0
        assert "── needs attention " + "─" * 41 in terminal.screen
        assert max(map(len, terminal.screen)) == 60


def test_impossible_values_are_refused(server: Cluster, tmp_path: Path) -> None:
    tenure = Command(tmp_path, url=server.url())
    assert tenure("top", "--json").error[2] == "add --once: tenure top --once --json"
    done = tenure("top")
    assert (done.code, done.error[2]) == (2, "print one frame: tenure top --once")
    away = tenure("top", "--once", "--database-url", "postgresql://ada:hush@127.0.0.1:1/x")
    assert away.code == 6
    assert "hush" not in away.err
