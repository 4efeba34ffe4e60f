"""`tenure failed` and `tenure operation`: many dead letters at once, watched and steered."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import BROKEN, BY, dead_letter, done_by_a_worker, ended, held, state
from tenure._model.operation import Filter, NewOperation, OperationKind
from tenure.admin import State
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tenure._model.ids import JobId
    from tests.cli.conftest import Command


async def dead_letters(db: Database, count: int, **fields: object) -> list[JobId]:
    return [await dead_letter(db, **fields) for _ in range(count)]


async def test_dead_letters_are_retried_by_the_filter_and_watched_to_the_end(
    db: Database, tenure: Command
) -> None:
    """Shows R15, R36."""
    wanted = await dead_letters(db, 3)
    [other] = await dead_letters(db, 1, queue="other")
    command = asyncio.to_thread(
        tenure, "failed", "retry", "-q", "default", "--yes", "--reason", "fixed", "--json"
    )
    done, _ = await asyncio.gather(command, done_by_a_worker(db))
    assert done.code == Exit.DONE, done.err
    row = done.json["operation"]
    assert (row["state"], row["total"], row["outcomes"]) == ("done", 3, {"retried": 3})
    assert [await state(db, job) for job in wanted] == [State.QUEUED] * 3
    assert await state(db, other) is State.FAILED

    shown = tenure("job", "show", wanted[0])
    assert "retried" in shown.out
    assert "fixed" in shown.out


async def test_a_discard_that_missed_some_says_so(db: Database, tenure: Command) -> None:
    """Shows R15."""
    dead = await dead_letters(db, 2)

    blocker = await db.party("blocker")
    async with blocker.transaction():
        await blocker.connection.execute(
            "SELECT FROM tenure.job_failed WHERE id = %s FOR UPDATE", [dead[0]]
        )
        command = asyncio.to_thread(tenure, "failed", "discard", "--yes")
        done, _ = await asyncio.gather(command, done_by_a_worker(db))
    assert done.code == Exit.PARTIAL
    assert done.error[0] == "1 of 2 dead letters are unchanged"


async def test_a_rehearsal_counts_and_nothing_is_done_without_a_yes(
    db: Database, tenure: Command
) -> None:
    await dead_letters(db, 2)
    rehearsed = tenure("failed", "retry", "--dry-run", "--json")
    assert (rehearsed.code, rehearsed.json) == (Exit.DONE, {"dry_run": True, "total": 2})
    refused = tenure("failed", "discard")
    assert refused.code == Exit.USAGE
    assert refused.error[2] == "check the count with --dry-run, then add --yes"
    assert tenure("operation", "list", "--json").json == {"operations": [], "next": None}


async def test_who_stops_watching_does_not_stop_the_operation(
    db: Database, tenure: Command
) -> None:
    await dead_letters(db, 1)
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-m", "tenure", "failed", "retry", "--yes", "--json"],
        cwd=tenure.directory,
        env=tenure.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "Ctrl-C stops watching" in await asyncio.to_thread(process.stderr.readline)
    os.kill(process.pid, signal.SIGINT)
    out, err = await asyncio.to_thread(process.communicate, timeout=30)
    assert process.returncode == Exit.INTERRUPTED
    assert '"detached": true' in out
    assert "the operation continues. To see it: tenure operation show 1" in err
    await done_by_a_worker(db)
    assert tenure("operation", "show", 1, "--json").json["operation"]["state"] == "done"


async def test_an_operation_is_paused_resumed_and_aborted(db: Database, tenure: Command) -> None:
    """Shows R36."""
    await dead_letters(db, 2)
    new = NewOperation(kind=OperationKind.RETRY, filter=Filter(), rate=2)
    operation = await db.run(db.real.operations.start(new, BY))
    await db.run(db.real.operations.run_chunk())
    paused = tenure("operation", "pause", operation.id, "--reason", "lunch", "--by", "ana")
    assert paused.code == Exit.DONE
    assert "is paused, 1 of 2 done; to resume it: tenure operation resume 1" in paused.err
    assert "is running" in tenure("operation", "resume", operation.id).err
    aborted = tenure("operation", "abort", operation.id, "--json")
    assert aborted.json["operation"]["state"] == "aborted"

    shown = tenure("operation", "show", operation.id)
    assert "1 of 2" in shown.out
    assert "pending" in shown.out
    assert "lunch" in shown.out
    only = tenure("operation", "show", operation.id, "--outcome", "retried", "--json").json
    assert [item["place"] for item in only["items"]] == [1]
    assert "aborted" in tenure("operation", "list").out
    again = tenure("operation", "resume", operation.id)
    assert (again.code, again.error[1]) == (Exit.USAGE, "operation 1 is aborted")


def test_an_operation_that_there_is_not_is_not_found(tenure: Command) -> None:
    for verb in ("show", "pause", "resume", "abort"):
        ended = tenure("operation", verb, 4711)
        assert ended.code == Exit.NOT_FOUND
        assert ended.error[0] == "operation 4711 does not exist"


async def test_dead_letters_are_listed_by_the_signature_of_their_error(
    db: Database, tenure: Command
) -> None:
    """Shows R15."""
    [dead] = await dead_letters(db, 1)
    [lease] = await held(db, max_attempts=1)
    await db.run(db.store.settlement.settle([ended(lease, BROKEN)]))
    await db.fetch("UPDATE tenure.job_failed SET error_signature = 'E' WHERE id = $1", dead)
    listed = tenure("failed", "list", "--signature", "E", "--json").json
    assert [job["id"] for job in listed["jobs"]] == [dead]
    assert "2 shown" in tenure("failed", "list").err


@pytest.mark.parametrize("rate", ["0", "10001", "fast"])
def test_a_rate_that_cannot_be_is_a_mistake_of_usage(tenure: Command, rate: str) -> None:
    assert tenure("failed", "retry", "--yes", "--rate", rate).code == Exit.USAGE
