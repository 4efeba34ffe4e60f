"""Dead letters of jobs that died: the command line, the API and the page name the cause."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest

from support.store import SECOND, A, Database
from tenure._model.ids import JobId, Token
from tenure._model.lease import Lease
from tenure._model.outcome import Failed
from tenure._model.worker import NewWorker
from tenure._runtime import in_processes
from tenure._runtime.lease_board import BoardEntry, Phase
from tenure.errors import Error
from tenure.worker.recovery import Death, judge
from tests.cli.conftest import Command
from tests.conformance.acts import DAY, claim_a_suspect, ended, enqueue, get, lose, settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from support.serving import Service
    from tenure._model.lease import ClaimedJob
    from tenure._model.outcome import Outcome


def own_process(code: int, *, out_of_memory: bool = False) -> Outcome:
    """The loss of a job whose own process ended with this code, in the words of its executor."""
    process = SimpleNamespace(code=code, out_of_memory=out_of_memory, idle_from=0.0)
    return in_processes._lost(cast("Any", process), died_at=100.0)


def shared_process(*, neighbors: int = 0, phase: Phase = Phase.STARTED, **death: Any) -> Outcome:
    """The end of a job whose child died, in the words of its parent."""
    entries = [
        BoardEntry(
            Lease(JobId(n), Token(1), A, timedelta(seconds=30)),
            phase,
            stop_at=0.0,
            attempt=1,
            limit=1,
            since=100.0,
        )
        for n in range(neighbors + 1)
    ]
    return judge(entries, Death(ended_at=100.0, **{"code": -9} | death))[0][1]


def settled(outcome: Outcome) -> Callable[[Database, ClaimedJob], Awaitable[object]]:
    async def end(db: Database, claimed: ClaimedJob) -> None:
        await settle(db, claimed, outcome)

    return end


async def expired(db: Database, claimed: ClaimedJob) -> None:
    """The worker was killed, and the lease ran out."""
    await db.run(db.store.workers.register(NewWorker(A, "mill-3", "host", 1, "1.0", ["q"], 10)))
    await lose(db, claimed)


async def after_progress(db: Database, claimed: ClaimedJob) -> None:
    """The process died after the cursor had moved."""
    await db.run(db.store.leases.progress(claimed.lease, cursor=claimed.job.deaths))
    await settle(db, claimed, own_process(-11))


@dataclass(frozen=True)
class Kind:
    """One kind of death: how each attempt ends, how many there are, and what is shown."""

    name: str
    end: Callable[[Database, ClaimedJob], Awaitable[object]]
    lives: int
    losses: str
    cause: str
    reason: str = "poison"
    max_losses: int = 3


OWN = "3 of its process, 0 of its worker, 3 in all"
WORKERS = "0 of its process, 10 of its worker, 10 in all"
KINDS = [
    Kind("signal", settled(own_process(-11)), 3, OWN, "its own process died: SIGSEGV"),
    Kind("exit_code", settled(own_process(3)), 3, OWN, "its own process died: exit code 3"),
    Kind(
        "out_of_memory",
        settled(own_process(-9, out_of_memory=True)),
        *(3, OWN, "its own process was killed: the system was out of memory"),
    ),
    Kind(
        "deadline",
        settled(shared_process(killed="lease")),
        *(3, OWN, "its worker process stopped responding and was killed"),
    ),
    Kind(
        "expired",
        expired,
        *(10, WORKERS),
        r"the lease expired and its worker did not give it back "
        r"(lease expired at DATE, worker mill-3, last seen at DATE)",
    ),
    Kind(
        "neighbors",
        settled(shared_process(neighbors=7, code=-11)),
        *(10, WORKERS, "its worker process died: SIGSEGV, with 7 other jobs running in it"),
    ),
    Kind(
        "moving_cursor",
        after_progress,
        *(100, "1 of its process, 0 of its worker, 100 in all", "its own process died: SIGSEGV"),
    ),
    Kind(
        "fails_on_loss",
        settled(shared_process(code=1)),
        *(1, "0 of its process, 1 of its worker, 1 in all", "its worker process died: exit code 1"),
        *("lost", 0),
    ),
    Kind(
        "timed_out",
        settled(shared_process(phase=Phase.TIMED_OUT, killed="lease")),
        *(1, "0", "stopped at its timeout"),
        *("attempts",),
    ),
]


def dated(text: str) -> str:
    """The text without its markup, with `DATE` for each instant."""
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "DATE", plain)


def page(service: Service, path: str) -> str:
    """A page of the dashboard as the server renders it, without its markup."""
    with httpx.Client(base_url=service.url, follow_redirects=True, timeout=30) as visitor:
        sent = {"Origin": service.url}
        visitor.post("/sign-in", data={"token": service.secret}, headers=sent).raise_for_status()
        answer = visitor.get(path).raise_for_status()
    return dated(answer.text)


async def killed(db: Database, kind: Kind) -> JobId:
    """A dead letter of this kind."""
    job_id = await enqueue(db, kind.name, max_attempts=1, max_losses=kind.max_losses)
    for _ in range(kind.lives):
        assert (await get(db, job_id)).state == "queued"
        await kind.end(db, await claim_a_suspect(db))
    return job_id


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_dead_letter_names_what_ended_it_wherever_it_is_shown(
    service: Service, tmp_path: Path, kind: Kind
) -> None:
    """Shows R15, R16, R35, R36."""
    db = Database(service.database)
    job_id = await killed(db, kind)
    await db.close()
    tenure = Command(tmp_path, url=service.database)

    shown = dated((await asyncio.to_thread(tenure, "job", "show", job_id)).out)
    assert re.search(rf"^reason +{kind.reason}$", shown, re.MULTILINE)
    assert re.search(rf"^losses +{re.escape(kind.losses)}$", shown, re.MULTILINE)
    # Each death says what it was.
    assert shown.count(kind.cause) == kind.lives

    listed = await asyncio.to_thread(tenure, "failed", "list", "--task", kind.name)
    [line] = [line for line in listed.out.splitlines() if line.startswith(f"{job_id} ")]
    assert f" {kind.reason} " in line
    assert kind.cause in dated(line)

    with service.caller() as caller:
        job = caller.get(f"/v1/jobs/{job_id}").json()
    assert (job["state"], job["done_reason"]) == ("failed", kind.reason)
    assert dated(job["error_message"]) == kind.cause

    drawn = page(service, f"/jobs/{job_id}")
    reason = {"attempts": "after 1 attempt"}.get(kind.reason, kind.reason)
    assert re.search(rf"Failed\s+{reason}\b", drawn)
    assert kind.cause in drawn
    assert kind.cause in page(service, f"/failed?queue=q&task={kind.name}")


async def test_a_dead_letter_still_has_its_trace_and_log_when_its_day_was_dropped(
    db: Database, tmp_path: Path
) -> None:
    """Shows R16."""
    error = Error("ValueError", "no such thing", trace="Traceback\n  line 7")
    job_id = await enqueue(db, max_attempts=1)
    claimed = await claim_a_suspect(db)
    await db.run(db.store.settlement.settle([ended(claimed, Failed(error), log="what it said")]))
    filed = await db.fetch("SELECT 1 AS one FROM tenure.attempt")
    db.clock.advance(8 * DAY + SECOND)
    await db.run(db.store.maintenance.maintain())
    assert len(filed) == 1
    assert await db.fetch("SELECT 1 AS one FROM tenure.attempt") == []

    done = Command(tmp_path, url=db.url)("job", "show", job_id)
    assert "ValueError: no such thing" in done.out
    assert "traceback of the last attempt:\n  Traceback\n    line 7" in done.out
    assert "log of the last attempt:\n  what it said" in done.out
