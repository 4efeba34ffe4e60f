"""A disk of our own can be full, and nothing is left of it."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from support.cluster import Cluster
from support.disk import Disk
from support.processes import alive, wait_for

SMALL = {"min_wal_size": "32MB", "max_wal_size": "32MB", "shared_buffers": "16MB"}


def loops() -> str:
    return subprocess.run(
        ["/usr/sbin/losetup", "--list"], check=True, capture_output=True, text=True, timeout=10
    ).stdout


def is_gone(directory: Path) -> bool:
    here = str(directory)
    return here not in Path("/proc/mounts").read_text() and here not in loops()


def test_it_is_full_then_free_then_gone() -> None:
    with Disk(16) as disk:
        directory = disk.path.parent
        assert not is_gone(directory)
        disk.fill()
        assert disk.left == 0
        with pytest.raises(OSError, match="No space left"):
            (disk.path / "more").write_bytes(bytes(100_000))
        disk.free()
        (disk.path / "more").write_bytes(bytes(100_000))
    assert wait_for(lambda: is_gone(directory), 10)
    assert not directory.exists()


def test_it_is_gone_after_a_failure_with_a_file_open() -> None:
    with ExitStack() as files:

        def fail() -> None:
            with Disk(16) as disk:
                found.append(disk.path.parent)
                files.enter_context((disk.path / "open").open("wb"))
                raise RuntimeError

        found: list[Path] = []
        with pytest.raises(RuntimeError):
            fail()
        assert not found[0].exists()
    assert wait_for(lambda: is_gone(found[0]), 10)


def test_a_server_on_a_full_disk_refuses_writes_and_recovers(cluster: Cluster) -> None:
    with Disk(192) as disk, Cluster(cluster.major, SMALL, parent=disk.path) as own:
        with psycopg.connect(own.url(), autocommit=True) as connection:
            connection.execute("CREATE TABLE thing AS SELECT 1 AS id, '' AS text")
            connection.execute("CHECKPOINT")
            disk.fill()
            # Ends as DiskFull where only the table cannot grow, as a PANIC where the log cannot.
            more = "INSERT INTO thing SELECT generate_series(2, 100000), repeat('x', 1000)"
            with pytest.raises((psycopg.errors.DiskFull, psycopg.OperationalError)):
                connection.execute(more)
        disk.free()
        # It may be down by then, or in a recovery for which there was no room.
        if not alive(own.pid):
            own.restart()
        assert wait_for(lambda: answers(own), 30), own.log()[-2000:]
        with psycopg.connect(own.url()) as connection:
            assert connection.execute("SELECT id, text FROM thing").fetchall() == [(1, "")]
            connection.execute("INSERT INTO thing VALUES (3, '')")


def answers(cluster: Cluster) -> bool:
    try:
        psycopg.connect(cluster.url(), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
