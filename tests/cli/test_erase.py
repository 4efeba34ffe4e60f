"""`tenure erase`: counted by table, confirmed, watched to the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from support.canaries import columns_with
from support.race_helpers import done_by_a_worker, enqueued
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command

CANARY = "zebra7041"


async def test_a_person_is_counted_and_erased(db: Database, tenure: Command) -> None:
    meta = {"tags": [CANARY]}
    await enqueued(db, 2, meta=meta, args={"customer": {"id": CANARY}})
    words = ("erase", "--tag", CANARY, "--arg", f"customer.id={CANARY}", "--reason", "ticket 12")
    rehearsed = tenure(*words, "--dry-run", "--json")
    assert rehearsed.code == Exit.DONE, rehearsed.err
    assert (rehearsed.json["total"], rehearsed.json["rows"]["job"]) == (2, 2)
    unconfirmed = tenure(*words)
    assert unconfirmed.code == Exit.USAGE
    assert "check the count with --dry-run, then add --yes" in unconfirmed.err
    assert "rows that belong to the jobs: 2 job" in unconfirmed.err

    command = asyncio.to_thread(tenure, *words, "--yes", "--json")
    done, _ = await asyncio.gather(command, done_by_a_worker(db))
    assert done.code == Exit.DONE, done.err
    row = done.json["operation"]
    assert (row["kind"], row["state"], row["outcomes"]) == ("erase", "done", {"erased": 2})
    assert columns_with(db.url, CANARY) == set()


def test_unclear_requests_are_refused(tenure: Command) -> None:
    assert "must have a tag" in tenure("erase", "--reason", "ticket 12", "--yes").err
    assert "must have a reason" in tenure("erase", "--key", "a", "--yes").err
    wrong = tenure("erase", "--arg", "customer", "--reason", "ticket 12")
    assert (wrong.code, wrong.error[1]) == (Exit.USAGE, "--arg must be NAME=VALUE, got 'customer'")
