"""`tenure queue`, `workers` and `setting`: what is set for all, looked at and changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from support.moves import dead_letter
from support.store import A
from tenure.cli.exits import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tests.edges.cli.conftest import Command


def test_a_queue_is_paused_limited_and_resumed(tenure: Command) -> None:
    """Shows R36."""
    tenure("job", "enqueue", "send", "-q", "mail")
    paused = tenure("queue", "pause", "mail", "--reason", "the provider is down", "--by", "ada")
    assert (paused.code, "tenure queue resume mail" in paused.err) == (Exit.DONE, True)
    tenure("queue", "limit", "mail", "--running", "3")

    [listed] = tenure("queue", "list", "--json").json["queues"]
    assert (listed["name"], listed["depth"]["due"]["value"]) == ("mail", 1)
    assert (listed["set"]["max_running"], listed["set"]["paused_by"]) == (3, "ada")
    assert "paused" in tenure("queue", "list").out
    shown = tenure("queue", "show", "mail").out
    assert "the provider is down" in shown
    assert "queue.limit" in shown

    assert tenure("queue", "resume", "mail", "--json").json["queue"]["paused_at"] is None
    assert tenure("queue", "limit", "mail", "--json").json["queue"]["max_running"] is None


def test_what_is_not_there_is_not_found(tenure: Command) -> None:
    assert tenure("queue", "show", "never").code == Exit.NOT_FOUND
    for verb in ("show", "drain"):
        ended = tenure("workers", verb, uuid4())
        assert (ended.code, ended.told[2]) == (
            Exit.NOT_FOUND,
            "see which there are: tenure workers list",
        )
    assert tenure("workers", "list", "--json").json == {"workers": []}


async def test_a_worker_is_shown_and_asked_to_end(db: Database, tenure: Command) -> None:
    await db.fetch(
        "INSERT INTO tenure.worker (id, name, host, pid, version, language, state, queues, slots,"
        " running, started_at, beat_at) VALUES"
        " ($1, 'w', 'h', 7, '1', 'python', 'active', '{mail}', 10, 2, now(), now())",
        str(A),
    )
    assert "mail" in tenure("workers", "list").out
    assert tenure("workers", "drain", A, "--reason", "a new release").code == Exit.DONE
    shown = tenure("workers", "show", A)
    assert "asked to end" in shown.out
    assert "2 of 10" in shown.out


def test_a_setting_is_changed_and_taken_back(tenure: Command) -> None:
    assert tenure("setting", "set", "lease", "45", "--reason", "slow disks").code == Exit.DONE
    assert tenure("setting", "set", "redact", json.dumps(["iban"])).code == Exit.DONE
    rows = {row["name"]: row for row in tenure("setting", "list", "--json").json["settings"]}
    assert (rows["lease"]["value"], rows["lease"]["changed"]) == (45, True)
    assert rows["redact"]["value"] == ["iban"]
    assert "2 of" in tenure("setting", "list").err
    assert tenure("setting", "reset", "lease", "--json").json == {"name": "lease", "value": 30}
    assert tenure("setting", "set", "lease", "soon").code == Exit.USAGE
    assert tenure("setting", "reset", "never").code == Exit.USAGE


async def test_dead_letters_are_grouped(db: Database, tenure: Command) -> None:
    """Shows R15."""
    dead = [await dead_letter(db) for _ in range(3)]
    [group] = tenure("failed", "groups", "--json").json["groups"]
    assert (group["count"]["value"], group["sample"] in dead) == (3, True)
    assert str(group["sample"]) in tenure("failed", "groups").out


async def test_jobs_are_moved_and_deleted(db: Database, tenure: Command) -> None:
    dead = await dead_letter(db)
    queued = tenure("job", "enqueue", "send", "--json").json["id"]
    moved = tenure("job", "move", queued, dead, "-q", "bulk", "--priority", "9", "--json")
    assert moved.code == Exit.PARTLY
    assert [job["answer"] for job in moved.json["jobs"]] == ["moved", "not_queued"]
    assert tenure("job", "show", queued, "--json").json["job"]["queue"] == "bulk"
    assert tenure("job", "move", queued).code == Exit.USAGE

    deleted = tenure("job", "delete", dead, queued, "--reason", "a test", "--json")
    assert deleted.code == Exit.PARTLY
    assert [job["answer"] for job in deleted.json["jobs"]] == ["deleted", "live"]
    assert tenure("job", "show", dead).code == Exit.NOT_FOUND
