"""`tenure queue`, `workers` and `setting`: what is set for all, looked at and changed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from support.race_helpers import dead_letter, enqueued, held
from support.store import A
from tenure._model.ids import WorkerId
from tenure._model.worker import NewWorker
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command


def test_a_queue_is_paused_limited_and_resumed(tenure: Command) -> None:
    """Shows R36."""
    tenure("job", "enqueue", "send", "-q", "mail")
    paused = tenure("queue", "pause", "mail", "--reason", "the provider is down", "--by", "ada")
    assert (paused.code, "tenure queue resume mail" in paused.err) == (Exit.DONE, True)
    tenure("queue", "limit", "mail", "--running", "3")

    [listed] = tenure("queue", "list", "--json").json["queues"]
    assert (listed["name"], listed["depth"]["due"]["value"]) == ("mail", 1)
    assert (listed["set"]["max_running"], listed["set"]["paused_by"]) == (3, "ada")
    table = tenure("queue", "list").out
    assert "paused" in table
    assert re.search(r" \d+:\d\d:\d\d ", table)
    shown = tenure("queue", "show", "mail").out
    assert "the provider is down" in shown
    assert "queue.limit" in shown

    assert tenure("queue", "resume", "mail", "--json").json["queue"]["paused_at"] is None
    assert tenure("queue", "limit", "mail", "--json").json["queue"]["max_running"] is None


async def test_unknown_queue_is_paused_with_a_warning(db: Database, tenure: Command) -> None:
    """A typo would leave the real queue running although an operator believes it paused."""
    await enqueued(db, queue="mail")
    for verb, words in (("pause", "queue mial is paused; "), ("limit", "queue mial has no limit")):
        ended = tenure("queue", verb, "mial")
        done, warned = ended.err.splitlines()
        assert (ended.code, done.startswith(words)) == (Exit.DONE, True)
        assert warned == (
            "warning: queue mial has no jobs and no worker serves it; did you mean mail?"
        )
    assert "warning" not in tenure("queue", "pause", "mail").err
    assert "warning" not in tenure("queue", "pause", "*").err


def test_what_is_not_there_is_not_found(tenure: Command) -> None:
    assert tenure("queue", "show", "never").code == Exit.NOT_FOUND
    for verb in ("show", "drain"):
        ended = tenure("worker", verb, uuid4())
        assert (ended.code, ended.error[2]) == (
            Exit.NOT_FOUND,
            "list the workers: tenure worker list --all",
        )
    assert tenure("worker", "list", "--json").json == {"workers": []}


async def test_worker_is_shown_and_drained(db: Database, tenure: Command) -> None:
    await db.fetch(
        "INSERT INTO tenure.worker (id, name, host, pid, version, language, state, queues, slots,"
        " running, started_at, last_heartbeat_at) VALUES"
        " ($1, 'w', 'h', 7, '1', 'python', 'active', '{mail}', 10, 2, now(), now())",
        str(A),
    )
    assert "mail" in tenure("worker", "list").out
    assert tenure("worker", "drain", A, "--reason", "a new release").code == Exit.DONE
    shown = tenure("worker", "show", A)
    assert "drain requested" in shown.out
    assert "2 of 10" in shown.out


async def test_a_worker_is_named_as_other_commands_show_it(db: Database, tenure: Command) -> None:
    """By its name, or by how its id begins; one that has ended is not in the way."""
    ids = {"anna/1": UUID(int=0xA1 << 120), "anna/2": UUID(int=0xA2 << 120), "bob/1": UUID(int=1)}
    gone = UUID(int=2)
    for name, worker_id in (*ids.items(), ("bob/1", gone)):
        await db.run(
            db.store.workers.register(NewWorker(WorkerId(worker_id), name, "h", 7, "1", [], 10))
        )
    await db.fetch("UPDATE tenure.worker SET state = 'offline' WHERE id = $1", str(gone))
    await db.fetch(
        "UPDATE tenure.worker SET last_heartbeat_at = now() - interval '1 hour' "
        "WHERE name = 'anna/1'"
    )
    listed = tenure("worker", "list")
    states = {line.split()[1]: line.split()[4] for line in listed.out.splitlines()[1:]}
    assert states == {"anna/1": "stale", "anna/2": "idle", "bob/1": "idle"}
    assert [line.split()[1] for line in listed.out.splitlines()[1:]][-1] == "anna/1"
    assert (str(gone) in listed.out, listed.err) == (False, "3 shown; 1 stopped: --all\n")
    assert str(gone) in tenure("worker", "list", "--all").out

    for text, name in (("anna/1", "anna/1"), ("bob", "bob/1"), ("A2", "anna/2")):
        shown = tenure("worker", "show", text, "--json").json["worker"]
        assert shown["health"] == states[name]
        assert (shown["name"], shown["id"]) == (name, str(ids[name]))
    unclear = tenure("worker", "drain", "anna")
    assert (unclear.code, "there are 2: anna/" in unclear.error[1]) == (Exit.USAGE, True)


def test_a_setting_is_changed_and_taken_back(tenure: Command) -> None:
    assert tenure("setting", "set", "lease", "45", "--reason", "slow disks").code == Exit.DONE
    assert tenure("setting", "set", "redact", json.dumps(["iban"])).code == Exit.DONE
    rows = {row["name"]: row for row in tenure("setting", "list", "--json").json["settings"]}
    assert (rows["lease"]["value"], rows["lease"]["changed"]) == (45, True)
    assert rows["redact"]["value"] == ["iban"]
    assert "2 of" in tenure("setting", "list").err
    assert tenure("setting", "reset", "lease", "--json").json == {"name": "lease", "value": 30}
    assert tenure("setting", "set", "lease", "5m", "--json").json == {"name": "lease", "value": 300}
    soon = tenure("setting", "set", "lease", "soon")
    assert (soon.code, soon.error[2]) == (Exit.USAGE, "write it as 90, 90s, 5m, 1h30m or 1d")
    assert tenure("setting", "set", "keep_failed_days", "5h").code == Exit.USAGE
    assert tenure("setting", "reset", "never").code == Exit.USAGE


async def test_dead_letters_are_grouped(db: Database, tenure: Command) -> None:
    """Shows R15."""
    dead = [await dead_letter(db) for _ in range(3)]
    [group] = tenure("failed", "groups", "--json").json["groups"]
    assert (group["count"]["value"], group["sample"] in dead) == (3, True)
    assert str(group["sample"]) in tenure("failed", "groups").out


async def test_a_job_is_revoked_and_a_queue_configured_and_the_audit_has_both(
    db: Database, tenure: Command
) -> None:
    """Shows R8, R13, R36."""
    [lease] = await held(db)
    revoked = tenure("job", "revoke", lease.job_id, 4711, "--reason", "it hangs", "--json")
    assert revoked.code == Exit.PARTIAL
    assert [job["result"] for job in revoked.json["jobs"]] == ["revoked", "not_running"]
    assert "cancelled" in tenure("job", "list", "--state", "cancelled").out

    text = "queue configure default --lease 5m --max-attempts 7 --by ana --json"
    row = tenure(*text.split()).json["queue"]
    assert (row["lease"], row["max_attempts"]) == (300, 7)

    listed = tenure("audit")
    newest, oldest = listed.out.splitlines()[1:]
    assert "queue.configure" in newest
    assert ("it hangs" in oldest, f"job:{lease.job_id}" in oldest) == (True, True)
    [found] = tenure("audit", "--actor", "ana", "--action", "queue", "--json").json["audit"]
    assert found["after"]["max_attempts"] == 7


async def test_jobs_are_moved_and_deleted(db: Database, tenure: Command) -> None:
    dead = await dead_letter(db)
    queued = tenure("job", "enqueue", "send", "--json").json["id"]
    moved = tenure("job", "move", queued, dead, "-q", "bulk", "--priority", "9", "--json")
    assert moved.code == Exit.PARTIAL
    assert [job["result"] for job in moved.json["jobs"]] == ["moved", "not_queued"]
    assert tenure("job", "show", queued, "--json").json["job"]["queue"] == "bulk"
    assert tenure("job", "move", queued).code == Exit.USAGE

    deleted = tenure("job", "delete", dead, queued, "--reason", "a test", "--json")
    assert deleted.code == Exit.PARTIAL
    assert [job["result"] for job in deleted.json["jobs"]] == ["deleted", "live"]
    assert tenure("job", "show", dead).code == Exit.NOT_FOUND
