"""Programs of their own: what a fork, an exit or a loop's end does to an app's connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.app.acts import connections, rows, script, until

if TYPE_CHECKING:
    from pathlib import Path


def numbers(url: str) -> list[int]:
    return sorted(each["args"]["n"] for each in rows(url))


PROGRAM = """
import asyncio, os, sys
from tenure import Tenure

url = sys.argv[1]
app = Tenure(url)

@app.task(name="work")
def work(n: int) -> int:
    return n

def in_child(act):
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

def backend():
    with app.engine._pools.checkout() as connection:
        return connection.info.backend_pid
"""


def program(tmp_path: Path, url: str, text: str) -> str:
    """What a program printed that ended well and without a word of complaint."""
    done = script(tmp_path, PROGRAM + text, url)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_a_child_process_does_not_touch_its_parents_connections(tmp_path: Path, url: str) -> None:
    output = program(
        tmp_path,
        url,
        """
work.enqueue(0)
before = backend()

def act():
    for n in (1, 2, 3):
        work.enqueue(n)
    assert backend() != before, "the child has its parent's connection"
    asyncio.run(work.aenqueue(4))

assert in_child(act) == 0
work.enqueue(5)
print(backend() == before)
app.close()
""",
    )
    assert output == "True\n"
    assert numbers(url) == [0, 1, 2, 3, 4, 5]


def test_a_child_that_closes_the_app_leaves_its_parents_connections_open(
    tmp_path: Path, url: str
) -> None:
    reported = program(
        tmp_path,
        url,
        """
work.enqueue(0)
before = backend()
assert in_child(app.close) == 0
with app.engine._pools.checkout() as connection:
    print(connection.execute("SELECT 1").fetchone(), connection.info.backend_pid == before)
app.close()
""",
    )
    assert reported == "(1,) True\n"


def test_children_may_be_made_before_the_first_job_too(tmp_path: Path, url: str) -> None:
    program(
        tmp_path,
        url,
        """
for n in (1, 2, 3):
    assert in_child(lambda: work.enqueue(n)) == 0
work.enqueue(4)
app.close()
""",
    )
    assert numbers(url) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "act", ["work.enqueue(1)", "asyncio.run(work.aenqueue(1))"], ids=["sync", "async"]
)
def test_a_program_that_never_closes_its_app_ends_quietly(
    tmp_path: Path, url: str, act: str
) -> None:
    program(tmp_path, url, act)
    until(lambda: connections(url) == [])
    assert numbers(url) == [1]


def test_event_loops_that_come_and_go_leave_no_connections_behind(tmp_path: Path, url: str) -> None:
    """As in a sync program that calls `asyncio.run` time and again."""
    output = program(
        tmp_path,
        url,
        """
import gc, psycopg
for n in range(12):
    asyncio.run(work.aenqueue(n))
gc.collect()
with psycopg.connect(url, autocommit=True) as connection:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure'"
    print(connection.execute(count).fetchone()[0])
""",
    )
    assert int(output) <= 2
