"""`tenure schedule`: made, looked at, steered and backfilled from the command line."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, get_args

import pytest

from support.race_helpers import done_by_a_worker
from tenure._model.job import NewJob
from tenure._model.schedule import Missed, NewSchedule, Overlap, Timing
from tenure.cli.errors import Exit
from tenure.cli.schedule_define import MissedName, MissedOrDeclared, OverlapName

if TYPE_CHECKING:
    from support.store import Database
    from tests.cli.conftest import Command

MINUTE = timedelta(minutes=1)


async def fired(db: Database, after: timedelta = MINUTE) -> None:
    """Advance the clock, and fire due schedules."""
    db.clock.advance(after)
    await db.run(db.store.ticks.fire())


def test_a_schedule_is_made_with_every_option(tenure: Command) -> None:
    """Shows R24, R28."""
    text = (
        "schedule create nightly shop.report --timezone Europe/Berlin --args - -q slow "
        "--priority 2 --max-attempts 7 --timeout 1h30m --expires-in 3h --tag blue --tag green "
        "--missed all --missed-within 2d --missed-limit 5 --overlap skip --jitter 90s "
        "--by ana --reason trial --json"
    )
    made = tenure(*text.split(), "--cron", "30 2 * * *", stdin='{"n": 1}')
    assert made.code == Exit.DONE
    row = made.json["schedule"]
    assert row["timing"] == {
        "cron": "30 2 * * *",
        "every": None,
        "at": None,
        "zone": "Europe/Berlin",
    }
    assert (row["job"]["task"], row["job"]["args"]) == ("shop.report", {"n": 1})
    assert (row["job"]["queue"], row["job"]["priority"]) == ("slow", 2)
    assert row["job"]["meta"] == {"tags": ["blue", "green"], "timeout": 5400, "expires_in": 10_800}
    assert row["in_force"] == {
        "missed": "all",
        "missed_within": 172_800,
        "missed_limit": 5,
        "overlap": "skip",
        "jitter": 90,
    }
    assert len(made.json["next"]) == 3
    shown = tenure("schedule", "show", "nightly", "--json").json
    [audit] = shown["audit"]
    assert (audit["actor"], audit["source"], audit["reason"]) == ("ana", "cli", "trial")


def test_what_is_made_is_listed_with_its_next_run_in_its_zone_and_in_utc(tenure: Command) -> None:
    """Shows R25, R28."""
    tenure("schedule", "create", "b", "work", "--every", "1h30m")
    tenure("schedule", "create", "a", "work", "--cron", "0 9 * * *", "--timezone", "Asia/Tokyo")
    listed = tenure("schedule", "list")
    head, first, second = listed.out.splitlines()
    assert head.split() == ["name", "when", "zone", "state", "next", "local", "next", "UTC"]
    assert first.split()[:8] == [*["a", "0", "9", "*", "*", "*", "Asia/Tokyo", "active"]]
    assert "09:00:00+0900" in first
    assert "00:00:00Z" in first
    assert "every 1h30m" in second
    assert listed.err == "2 shown; no more\n"
    page = tenure("schedule", "list", "-n", 1, "--json").json
    assert ([row["name"] for row in page["schedules"]], page["next"]) == (["a"], "a")
    rest = tenure("schedule", "list", "--after", "a", "--json").json
    assert [row["name"] for row in rest["schedules"]] == ["b"]


async def test_one_is_shown_with_its_next_and_its_past_runs(db: Database, tenure: Command) -> None:
    """Shows R28."""
    tenure("schedule", "create", "often", "work", "--every", "60", "--args", '{"n": 1}')
    await fired(db)
    tenure("schedule", "pause", "often", "--by", "ana", "--reason", "an outage")
    await fired(db)
    shown = tenure("schedule", "show", "often")
    assert shown.code == Exit.DONE
    for text in ("every 1m", "paused", "ana", "an outage", "next runs", "past runs"):
        assert text in shown.out
    fields = tenure("schedule", "show", "often", "--json").json
    assert [(t["outcome"], t["reason"]) for t in fields["ticks"]] == [
        ("skipped", "paused"),
        ("fired", None),
    ]
    assert [run["paused"] for run in fields["next"]] == [True] * 5
    assert {run["fire_at"][-6:] for run in fields["next"]} == {"+00:00"}


def test_one_is_paused_resumed_run_and_deleted(tenure: Command) -> None:
    """Shows R28."""
    tenure("schedule", "create", "often", "work", "--every", "1h")
    paused = tenure("schedule", "pause", "often", "--until", "2099-01-01T00:00+01:00", "--json")
    assert paused.json["schedule"]["state"] == "paused"
    assert "paused until 2098-12-31 23:00:00+0000" in paused.err
    resumed = tenure("schedule", "resume", "often")
    assert (resumed.code, resumed.out) == (Exit.DONE, "")
    assert "often is active; next run: " in resumed.err
    ran = tenure("schedule", "run", "often", "--key", "x")
    assert (ran.code, ran.out) == (Exit.DONE, "1\n")
    again = tenure("schedule", "run", "often", "--key", "x", "--json")
    assert again.json == {"id": 1, "created": False}
    assert tenure("schedule", "delete", "often", "--reason", "over").code == Exit.DONE
    assert tenure("schedule", "show", "often").code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    "words",
    ["show", "pause", "resume", "delete", "run", "preview", "update --jitter 5", "backfill"],
)
def test_one_that_is_not_there_is_not_found(tenure: Command, words: str) -> None:
    verb, *rest = words.split()
    more = ["--from", "2026-01-01T00:00Z"] if verb == "backfill" else rest
    ended = tenure("schedule", verb, "never", *more)
    assert (ended.code, ended.out) == (Exit.NOT_FOUND, "")
    assert ended.error[::2] == (
        "schedule never does not exist",
        "list the schedules: tenure schedule list",
    )


async def test_of_what_code_declares_the_policies_are_set_and_marked(
    db: Database, tenure: Command
) -> None:
    new = NewSchedule(name="nightly", timing=Timing(cron="0 3 * * *"), job=NewJob("work"))
    await db.run(db.store.schedules.declare("shop", [1, 4], [new]))
    set_by = tenure("schedule", "update", "nightly", "--missed", "skip", "--jitter", "5m")
    assert set_by.code == Exit.DONE
    assert "missed skip*" in set_by.err
    assert "missed=skip*, jitter=5m*" in tenure("schedule", "list").out
    shown = tenure("schedule", "show", "nightly")
    assert "program shop 1.4" in shown.out
    assert "* set by an operator" in shown.err
    back = tenure(
        *[
            "schedule",
            "update",
            "nightly",
            "--missed",
            "declared",
            "--jitter",
            "declared",
            "--json",
        ],
        *["--missed-limit", "declared", "--missed-within", "declared"],
    )
    assert set(back.json["schedule"]["set_policy"].values()) == {None}
    refused = tenure("schedule", "update", "nightly", "--cron", "* * * * *")
    assert refused.code == Exit.USAGE
    assert "declared in the code of" in refused.error[1]
    assert refused.error[2].startswith("change cron there")
    assert tenure("schedule", "delete", "nightly").code == Exit.USAGE


def test_one_that_was_made_at_run_time_gets_another_definition(tenure: Command) -> None:
    tenure("schedule", "create", "often", "work", "--cron", "@daily", "--timezone", "Asia/Tokyo")
    text = "schedule update often --every 90s --task other -q mail --missed-limit 7 --overlap skip"
    row = tenure(*text.split(), "--json").json["schedule"]
    assert (row["timing"]["every"], row["timing"]["cron"], row["timing"]["zone"]) == (
        90,
        None,
        "UTC",
    )
    assert (row["job"]["task"], row["job"]["queue"]) == ("other", "mail")
    assert (row["policy"]["missed_limit"], row["policy"]["overlap"]) == (7, "skip")
    once = tenure("schedule", "update", "often", "--at", "2099-01-01T09:00+01:00")
    assert "2099-01-01 08:00:00Z" in once.out


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([], "give one of cron="),
        (["--every", "soon"], "got 'soon'"),
        (["--every", "1h30"], "got '1h30'"),
        (["--every", "0.5"], "every must be at least 1 s"),
        (["--cron", "* * *"], "got 3: "),
        (
            ["--cron", "* * * * *", "--timezone", "Mars/Phobos"],
            "time zone 'Mars/Phobos' does not exist",
        ),
        (["--at", "tomorrow"], "'tomorrow'"),
        (["--at", "2099-01-01T09:00"], "must have a time zone"),
        (
            ["--every", "60", "--missed", "never"],
            "--missed must be one of skip, latest, all, got never",
        ),
        (["--every", "60", "--args", "[1]"], "--args must be a JSON object, got [1]"),
    ],
)
def test_what_cannot_be_a_schedule_is_a_mistake_of_usage(
    tenure: Command, wrong: list[str], why: str
) -> None:
    ended = tenure("schedule", "create", "wrong", "work", *wrong)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert why in ended.error[1]
    again = tenure("schedule", "update", "wrong", "--missed-limit", "many")
    assert again.code == Exit.USAGE


def test_an_expression_is_previewed_without_a_database(command: Command) -> None:
    """Shows R25."""
    text = "--timezone Europe/Berlin --count 3 --after 2027-03-27T00:00Z"
    shown = command("schedule", "preview", "30 2 * * *", *text.split())
    assert shown.code == Exit.DONE
    head, before, change, after = shown.out.splitlines()
    assert head.split() == ["Europe/Berlin", "UTC", "clock", "change"]
    assert before.split()[:2] == ["2027-03-27", "02:30:00+0100"]
    assert change.split()[:4] == ["2027-03-28", "03:00:00+0200", "2027-03-28", "01:00:00Z"]
    assert change.endswith("gap: 02:00 becomes 03:00; moved to its end")
    assert after.split()[:2] == ["2027-03-29", "02:30:00+0200"]
    data = command("schedule", "preview", "--every", "90", "-n", 2, "--json").json
    assert data["zone"] == "UTC"
    assert len(data["runs"]) == 2
    nick = command("schedule", "preview", "@hourly", "-n", 1)
    assert (nick.code, nick.err) == (Exit.DONE, "upcoming runs: 1\n")
    wrong = command("schedule", "preview", "* * * 99 *")
    assert wrong.code == Exit.USAGE
    assert "'99' is not a valid month" in wrong.error[1]
    assert command("schedule", "preview").code == Exit.USAGE


def test_a_schedule_is_previewed_in_its_own_zone(tenure: Command) -> None:
    tenure("schedule", "create", "a", "work", "--cron", "0 9 * * *", "--timezone", "Asia/Tokyo")
    shown = tenure("schedule", "preview", "a", "-n", 2, "--after", "2027-01-01T00:00Z", "--json")
    assert [run["local"] for run in shown.json["runs"]] == [
        "2027-01-02T09:00:00+09:00",
        "2027-01-03T09:00:00+09:00",
    ]
    ended = tenure("schedule", "preview", "a", "--timezone", "UTC")
    assert (ended.code, ended.error[0]) == (Exit.USAGE, "a schedule has its own times")


async def test_past_ticks_are_backfilled_and_each_once(db: Database, tenure: Command) -> None:
    """Shows R28."""
    tenure("schedule", "create", "often", "work", "--every", "60")
    since = (datetime.now(UTC) - timedelta(hours=20)).replace(second=0, microsecond=0)
    ends = ("--from", since.isoformat(), "--to", (since + 10 * MINUTE).isoformat())
    rehearsed = tenure("schedule", "backfill", "often", *ends, "--dry-run")
    assert (rehearsed.code, rehearsed.out.split()) == (Exit.DONE, ["backfill", "11"])
    assert "nothing was changed" in rehearsed.err
    command = asyncio.to_thread(
        tenure, "schedule", "backfill", "often", *ends, "--json", "--reason", "an outage"
    )
    done, _ = await asyncio.gather(command, done_by_a_worker(db))
    assert done.code == Exit.DONE, done.err
    row = done.json["operation"]
    assert (row["kind"], row["state"], row["outcomes"]) == ("backfill", "done", {"fired": 11})
    again = tenure("schedule", "backfill", "often", *ends, "--json").json["operation"]
    assert (again["total"], again["state"]) == (0, "done")
    shown = tenure("operation", "show", row["id"])
    assert "schedule often" in shown.out
    assert f"{since:%Y-%m-%d %H:%M}" in shown.out
    naive = tenure("schedule", "backfill", "often", "--from", "2026-01-01T00:00")
    assert (naive.code, naive.error[1]) == (
        Exit.USAGE,
        "a time must have a time zone, got 2026-01-01T00:00",
    )


def test_the_words_of_the_options_are_those_of_the_policies() -> None:
    assert [*get_args(MissedName)] == [str(each) for each in Missed]
    assert [*get_args(MissedOrDeclared)] == [*map(str, Missed), "declared"]
    assert [*get_args(OverlapName)] == [str(each) for each in Overlap]
