"""`tenure job`: enqueued, shown, listed and steered from the command line."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from support.race_helpers import dead_letter, ended, enqueued, held
from support.store import A
from tenure._model.outcome import Failed
from tenure._model.worker import NewWorker
from tenure.cli.errors import Exit
from tenure.errors import Error

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command


def test_a_job_is_enqueued_by_its_tasks_name_and_its_id_is_the_data(tenure: Command) -> None:
    """Shows R36."""
    done = tenure("job", "enqueue", "shop.mail", "--args", '{"to": "ada"}', "-q", "mail")
    assert (done.code, done.out) == (Exit.DONE, "1\n")
    assert "enqueued job 1 in queue mail" in done.err
    shown = tenure("job", "show", 1, "--json").json
    job = shown["job"]
    assert (job["task"], job["args"], job["queue"]) == ("shop.mail", {"to": "ada"}, "mail")
    [row] = shown["audit"]
    assert (row["actor"], row["source"], row["action"]) == (getpass.getuser(), "cli", "enqueue")


def test_every_option_of_an_enqueue_reaches_the_job(tenure: Command) -> None:
    """Shows R11, R13, R17."""
    text = (
        "job enqueue work --priority 9 --delay 2h --key ada --key-for 1d --max-attempts 7 "
        "--lease 60 --timeout 90s --expires-in 3h --tag blue --tag green --target 5 --hold "
        "--by ana --reason trial"
    )
    first = tenure(*text.split(), "--args", "-", "--json", stdin='{"n": 1}')
    assert first.json == {"id": 1, "created": True}
    again = tenure(*text.split(), "--args", "-", "--json", stdin='{"n": 1}')
    assert again.json == {"id": 1, "created": False}
    assert "already has this key" in again.err

    shown = tenure("job", "show", 1, "--json").json
    job = shown["job"]
    assert (job["priority"], job["key"], job["max_attempts"], job["held"]) == (9, "ada", 7, True)
    waits = datetime.fromisoformat(job["run_at"]) - datetime.fromisoformat(job["created_at"])
    assert waits.total_seconds() == pytest.approx(7200, abs=1)
    assert job["meta"] == {"tags": ["blue", "green"], "timeout": 90, "expires_in": 10_800}
    [row] = shown["audit"]
    assert (row["actor"], row["reason"]) == ("ana", "trial")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--args", "{to: ada}"], "Expecting property name"),
        (["--args", "[1]"], "--args must be a JSON object, got [1]"),
        (["--delay", "soon"], "a duration must be a number of seconds or have units, got 'soon'"),
        (["--delay", "9e9d"], "got '9e9d'"),
        (["--delay", "9999999999999d"], "a duration must be a number of seconds"),
        (["--run-at", "tomorrow"], "'tomorrow'"),
        (["--run-at", "2030-01-31T09:00"], "run_at must have a time zone"),
        (["--priority", "10"], "priority must be 0 to 9"),
    ],
)
def test_what_cannot_be_enqueued_is_a_mistake_of_usage(
    tenure: Command, wrong: list[str], why: str
) -> None:
    ended = tenure("job", "enqueue", "work", *wrong)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert why in ended.error[1]


async def test_a_dead_letter_is_shown_with_its_attempts_and_retried(
    db: Database, tenure: Command
) -> None:
    """Shows R15, R16."""
    dead = await dead_letter(db)
    shown = tenure("job", "show", dead)
    assert shown.code == Exit.DONE
    assert "failed" in shown.out
    assert "ValueError: broken" in shown.out
    assert "ValueError: broken" in tenure("failed", "list").out
    why = tenure("job", "why", dead).out.splitlines()
    assert (len(why), why[1]) == (2, "Its last error: ValueError: broken")

    rehearsed = tenure("job", "retry", dead, "--dry-run", "--json")
    assert rehearsed.json["jobs"] == [{"id": dead, "result": "retried", "holder": None}]
    listed = tenure("job", "list", "--state", "failed", "--json").json
    assert [job["id"] for job in listed["jobs"]] == [dead]

    done = tenure("job", "retry", dead, "--reason", "fixed", "--by", "ana")
    assert done.code == Exit.DONE
    assert "retried" in done.out
    after = tenure("job", "show", dead)
    assert "queued" in after.out
    assert "fixed" in after.out


async def test_the_last_trace_and_log_are_shown_and_steer_no_terminal(
    db: Database, tenure: Command
) -> None:
    """The worker has its name, as long as it is known. Shows R16."""
    me = NewWorker(A, "anna/1", "h", 7, "1", ["default"], 10)
    await db.run(db.store.workers.register(me))
    [lease] = await held(db, max_attempts=1)
    assert "claimed by     anna/1" in tenure("job", "show", lease.job_id).out
    broken = Failed(Error("ValueError", "no\x1b[2J" + "o" * 200, "Trace:\n  at \x1b[2Jx\n"))
    await db.run(db.store.settlement.settle([ended(lease, broken)._replace(log="one\n\ttwo\x07")]))

    shown = tenure("job", "show", lease.job_id).out
    assert "\ntraceback of the last attempt:\n  Trace:\n    at \\x1b[2Jx\n" in shown
    assert "\nlog of the last attempt:\n  one\n          two\\x07\n" in shown
    assert " anna/1 " in shown
    listed = tenure("failed", "list").out
    assert "ValueError: no\\x1b[2Jooo" in listed
    assert listed.endswith("o…\n")


async def test_a_retry_whose_key_is_taken_is_a_conflict(db: Database, tenure: Command) -> None:
    """Shows R17."""
    dead = await dead_letter(db, key="one")
    [younger] = await enqueued(db, key="one")
    ended = tenure("job", "retry", dead)
    assert ended.code == Exit.CONFLICT
    assert ended.error[2] == f"see: tenure job show {younger}"


async def test_cancel_of_many_reports_each_result(db: Database, tenure: Command) -> None:
    """Shows R36."""
    [lease] = await held(db)
    [queued] = await enqueued(db)
    ended = tenure("job", "cancel", queued, lease.job_id, 4711, "--json")
    assert ended.code == Exit.PARTIAL
    assert [(each["id"], each["result"]) for each in ended.json["jobs"]] == [
        (queued, "cancelled"),
        (lease.job_id, "requested"),
        (4711, "not_live"),
    ]
    assert ended.error[:2] == (
        "1 of 3 jobs are unchanged",
        "job 4711 is not queued or running",
    )
    assert tenure("job", "cancel", 4711).code == Exit.FAILED


async def test_held_job_continues_when_resumed(db: Database, tenure: Command) -> None:
    """Shows R36."""
    [job_id] = await enqueued(db)
    assert tenure("job", "hold", job_id).code == Exit.DONE
    assert "queued, held" in tenure("job", "list").out
    assert tenure("job", "resume", job_id).code == Exit.DONE
    again = tenure("job", "resume", job_id)
    assert again.code == Exit.FAILED
    assert again.error[1] == f"job {job_id} is not held"


async def test_list_continues_where_it_ended(db: Database, tenure: Command) -> None:
    ids = sorted(await enqueued(db, 5, queue="mail"), reverse=True)
    await enqueued(db, queue="other")
    first = tenure("job", "list", "-q", "mail", "--task", "work", "-n", 3, "--json").json
    assert [job["id"] for job in first["jobs"]] == ids[:3]
    rest = tenure("job", "list", "-q", "mail", "--after", first["next"])
    assert [int(line.split()[0]) for line in rest.out.splitlines()[1:]] == ids[3:]
    assert rest.err.endswith("2 shown; no more\n")


async def test_a_list_is_filled_where_jobs_are_sparse(db: Database, tenure: Command) -> None:
    """What is searched per page is bounded; a person is not to page through nothing."""
    [job_id] = await enqueued(db)
    await db.fetch("SELECT setval('tenure.job_id_seq', 1000000)")
    assert [job["id"] for job in tenure("job", "list", "--json").json["jobs"]] == [job_id]


def test_empty_list_prints_a_sentence_and_no_data(tenure: Command) -> None:
    ended = tenure("job", "list")
    assert (ended.code, ended.out) == (Exit.DONE, "")
    assert ended.err.endswith("0 shown; no more\n")


def test_a_job_that_is_not_there_is_not_found(tenure: Command) -> None:
    ended = tenure("job", "show", 4711, "--json")
    assert (ended.code, ended.out) == (Exit.NOT_FOUND, "")
    assert ended.error[0] == "job 4711 does not exist"


def test_what_is_in_a_job_cannot_steer_the_terminal(tenure: Command) -> None:
    text = '{"a": "[red]\\u001b[2J\\u009b[/red]", "b": "ünï"}'
    tenure("job", "enqueue", "work", "--args", text, "--key", "\x1b]0;x")
    shown = tenure("job", "show", 1)
    assert "[red]" in shown.out
    assert "ünï" in shown.out
    assert not {"\x1b", "\x9b"} & set(shown.out)


def test_a_job_says_why_it_is_not_running(tenure: Command) -> None:
    """Shows R36."""
    tenure("job", "enqueue", "send", "-q", "mail")
    done = tenure("job", "why", 1)
    assert (done.code, done.err) == (Exit.DONE, "")
    assert done.out == ("No live worker serves queue mail. Run: tenure worker module:app -q mail\n")
    assert tenure("job", "why", 1, "--json").json["code"] == "not_served"


def test_why_of_a_job_that_is_not_there_is_an_answer_of_its_own(tenure: Command) -> None:
    done = tenure("job", "why", 99)
    assert (done.code, done.out) == (Exit.NOT_FOUND, "")
    assert done.error[0] == "job 99 does not exist"


async def test_jobs_are_edited_retried_with_arguments_and_run_again(
    db: Database, tenure: Command
) -> None:
    dead, [lease] = await dead_letter(db, args={"to": "ad"}), await held(db)
    queued = tenure("job", "enqueue", "work", "--args", '{"to": "ad"}', "--tag", "a", "--json")
    job_id = queued.json["id"]
    text = "--priority 9 --max-attempts 7 --timeout 5m --run-at 2040-01-01T10:00Z --tag b --tag c"
    args = ("--args", '{"to": "ada"}', "--by", "ana", "--reason", "typo")

    edited = tenure("job", "edit", job_id, lease.job_id, *text.split(), *args, "--json")

    assert edited.code == Exit.PARTIAL
    assert [one["result"] for one in edited.json["jobs"]] == ["edited", "running"]
    assert f"job {lease.job_id} is running" in edited.err
    shown = tenure("job", "show", job_id, "--json").json
    job = shown["job"]
    assert (job["args"], job["priority"], job["max_attempts"]) == ({"to": "ada"}, 9, 7)
    assert job["meta"] == {"tags": ["b", "c"], "timeout": 300}
    assert job["run_at"].startswith("2040-01-01T10:00")
    row = shown["audit"][0]
    assert (row["action"], row["actor"], row["reason"]) == ("edit", "ana", "typo")
    assert (row["before"]["args"], row["after"]["args"]) == ({"to": "ad"}, {"to": "ada"})
    assert tenure("job", "edit", job_id, "--no-tags").code == Exit.DONE
    assert tenure("job", "show", job_id, "--json").json["job"]["meta"]["tags"] == []
    assert tenure("job", "edit", job_id).code == Exit.USAGE

    first = tenure("job", "rerun", dead, "--dry-run", "--json")
    assert first.json["jobs"] == [{"id": dead, "result": "enqueued", "holder": None, "job": None}]
    again = tenure("job", "rerun", dead, *args, "--json").json["jobs"][0]
    assert (again["id"], again["result"]) == (dead, "enqueued")
    new = tenure("job", "show", again["job"], "--json").json["job"]
    assert (new["args"], new["meta"]) == ({"to": "ada"}, {"rerun_of": dead})
    assert f"runs again  {dead}" in " ".join(tenure("job", "show", again["job"]).out.split(" " * 4))

    retried = tenure("job", "retry", dead, "--args", "-", "--json", stdin='{"to": "bob"}')
    assert retried.json["jobs"][0]["result"] == "retried"
    assert tenure("job", "show", dead, "--json").json["job"]["args"] == {"to": "bob"}


def test_arguments_are_not_given_to_every_job_of_a_filter(tenure: Command) -> None:
    refused = tenure("job", "retry", "--filter", "state:failed", "--args", "{}", "--yes")
    assert refused.code == Exit.USAGE
    assert "--args must be used with job ids, got --filter" in refused.err
