"""What an operator sees of schedules, and does to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.store import SECOND
from tenure import Tenure
from tenure._model.schedule import NewSchedule, PolicyChange, Timing
from tenure.admin import By, State
from tenure.errors import InvalidValue, PayloadError
from tenure.types import Missed, Overlap, ScheduleState, TickOutcome, TickReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tenure.admin import Schedules
    from tenure.task import Task

ANA = By("ana", source="suite", reason="a trial")
MINUTE = timedelta(minutes=1)
BERLIN = "Europe/Berlin"


@pytest.fixture
def app(db: Database) -> Iterator[Tenure]:
    app = Tenure(db.url, redis="")
    yield app
    app.close()


@pytest.fixture
def schedules(app: Tenure) -> Schedules:
    return app.admin.schedules


@pytest.fixture
def greet(app: Tenure) -> Task[[str, int], None, None]:
    """A task with options of its own."""

    @app.task(name="greet", queue="mail", priority=7, max_attempts=5)
    def greet(name: str, times: int = 1) -> None:
        """Nothing."""

    return greet


async def declared(db: Database, name: str = "nightly", **more: Any) -> None:
    """A schedule that a program's code declares."""
    new = NewSchedule(name=name, timing=Timing(cron="0 3 * * *"), job=_job(), **more)
    await db.run(db.store.schedules.declare("shop", [1], [new]))


def _job() -> Any:
    from tenure._model.job import NewJob  # noqa: PLC0415 - for this alone

    return NewJob("work")


async def fired(db: Database, schedules: Schedules) -> None:
    """Let time pass until the schedule is due, and fire it. Not simply a minute: the
    test's clock is a little ahead of the server's, and a whole minute may lie between them."""
    row = schedules.get("often")
    assert row is not None
    assert row.next_at is not None
    db.clock.now = row.next_at
    await db.run(db.store.ticks.fire())


async def test_a_registered_tasks_arguments_are_checked_and_its_options_taken(
    schedules: Schedules, greet: Task[[str, int], None, None]
) -> None:
    """Shows R24."""
    row = schedules.create("hello", greet, ANA, cron="0 9 * * 1-5", args={"name": "Ada"})
    job = row.job
    assert (job.task, job.queue, job.priority, job.max_attempts) == ("greet", "mail", 7, 5)
    assert (job.args, row.program, row.state) == ({"name": "Ada"}, None, ScheduleState.ACTIVE)
    with pytest.raises(InvalidValue, match="cannot be called so: missing a required argument"):
        schedules.create("other", greet, ANA, every=60)
    with pytest.raises(InvalidValue, match="'name' is an int, not a str"):
        schedules.create("other", greet, ANA, every=60, args={"name": 5})


async def test_task_known_by_name_gets_its_arguments(schedules: Schedules) -> None:
    row = await schedules.acreate(
        "report",
        "shop.report",
        ANA,
        every=timedelta(hours=1),
        args={"n": 1},
        queue="slow",
        priority=2,
        max_attempts=1,
        timeout=90,
        expires_in=3600,
        tags=["blue"],
        missed="all",
        missed_within=7200,
        missed_limit=3,
        overlap="skip",
        jitter=30,
    )
    assert (row.job.task, row.job.queue, row.job.priority) == ("shop.report", "slow", 2)
    assert row.job.meta == {"tags": ["blue"], "timeout": 90, "expires_in": 3600}
    assert (row.policy.missed, row.policy.overlap) == (Missed.ALL, Overlap.SKIP)
    assert (row.policy.missed_within, row.policy.missed_limit) == (timedelta(hours=2), 3)
    assert row.policy.jitter == 30 * SECOND
    assert [one.name for one in schedules.list()] == ["report"]
    assert schedules.list(after="report") == []
    assert await schedules.aget("report") == schedules.get("report") is not None
    assert schedules.get("other") is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "give one of cron="),
        ({"every": 60, "cron": "* * * * *"}, "only one of cron=, every= and at="),
        (
            {"every": 60, "missed": "never"},
            "missed must be one of 'skip', 'latest', 'all', got 'never'",
        ),
        ({"every": 60, "overlap": "wait"}, "overlap must be one of 'allow', 'skip', got 'wait'"),
        (
            {"every": 60, "jitter": "soon"},
            "jitter must be a number of seconds or a timedelta, got 'soon'",
        ),
        ({"every": 60, "missed_limit": 0}, "missed_limit must be 1 to 10,000"),
        ({"cron": "0 9 * * *", "timezone": "Berlin"}, "did you mean|write Europe/Berlin"),
        ({"every": 60, "priority": 10}, "priority must be 0 to 9"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused(
    schedules: Schedules, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidValue, match=why):
        schedules.create("wrong", "work", ANA, **given)
    assert schedules.list() == []


def test_invalid_task_or_arguments_are_refused(schedules: Schedules) -> None:
    wrong: Any = [1]
    with pytest.raises(PayloadError, match="args must be a mapping, got"):
        schedules.create("wrong", "work", ANA, every=60, args=wrong)
    with pytest.raises(InvalidValue, match=r"task must be a task or a task's name, got \[1\]"):
        schedules.create("wrong", wrong, ANA, every=60)
    with pytest.raises(InvalidValue, match="count must be from 1 to 1,000, got 0"):
        schedules.list(count=0)
    misspelt: Any = {"evry": 60}
    with pytest.raises(TypeError, match="unexpected keyword argument 'evry'"):
        schedules.create("wrong", "work", ANA, **misspelt)


async def test_next_and_past_runs_are_seen(db: Database, schedules: Schedules) -> None:
    """Shows R28."""
    row = schedules.create("often", "work", ANA, every=60)
    runs = schedules.preview("often", count=3)
    assert [run.fire_at for run in runs] == [
        row.next_at,
        runs[0].fire_at + MINUTE,
        runs[0].fire_at + 2 * MINUTE,
    ]
    assert schedules.ticks("often") == []

    await fired(db, schedules)
    await fired(db, schedules)
    second, first = schedules.ticks("often")
    assert (first.fire_at, first.outcome, first.reason) == (row.next_at, TickOutcome.FIRED, None)
    assert first.job_id is not None
    assert second.fire_at == first.fire_at + MINUTE
    assert await schedules.aticks("often", before=second.fire_at, count=1) == [first]
    after = schedules.get("often")
    assert after is not None
    assert after.last_job_id == second.job_id


async def test_a_paused_schedule_makes_no_jobs_until_it_is_resumed(
    db: Database, app: Tenure, schedules: Schedules
) -> None:
    """Shows R28."""
    schedules.create("often", "work", ANA, every=60)
    paused = schedules.pause("often", ANA)
    assert (paused.state, paused.paused_by, paused.paused_reason) == (
        ScheduleState.PAUSED,
        "ana",
        "a trial",
    )
    assert all(run.paused for run in schedules.preview("often"))
    await fired(db, schedules)
    [tick] = schedules.ticks("often")
    assert (tick.outcome, tick.reason, tick.job_id) == (
        TickOutcome.SKIPPED,
        TickReason.PAUSED,
        None,
    )
    assert (await schedules.aresume("often", ANA)).state is ScheduleState.ACTIVE
    assert app.admin.jobs.list(State.QUEUED).jobs == []
    actions = [row.action for row in app.admin.audit.list("schedule:often")]
    assert actions == ["schedule.resume", "schedule.pause", "schedule.create"]


def test_a_pause_that_ends_by_itself_is_seen_in_the_runs_to_come(schedules: Schedules) -> None:
    row = schedules.create("often", "work", ANA, every=60)
    assert row.next_at is not None
    schedules.pause("often", ANA, until=row.next_at + MINUTE)
    assert [run.paused for run in schedules.preview("often", count=2)] == [True, False]
    with pytest.raises(InvalidValue, match="until must have a time zone"):
        schedules.pause("often", ANA, until=datetime(2099, 1, 1))  # noqa: DTZ001 - the point


async def test_a_deleted_schedule_leaves_its_ticks(db: Database, schedules: Schedules) -> None:
    """Shows R28."""
    schedules.create("often", "work", ANA, every=60)
    await fired(db, schedules)
    assert schedules.delete("often", ANA).name == "often"
    assert schedules.get("often") is None
    assert len(schedules.ticks("often")) == 1
    with pytest.raises(InvalidValue, match="schedule 'often' does not exist"):
        schedules.pause("often", ANA)


async def test_a_schedule_is_run_now_and_once_per_key(app: Tenure, schedules: Schedules) -> None:
    schedules.create("yearly", "work", ANA, cron="@yearly", args={"n": 1})
    first = schedules.run("yearly", ANA, key="ticket-5")
    assert first.created
    assert await schedules.arun("yearly", ANA, key="ticket-5") == type(first)(first.id, False)
    assert schedules.run("yearly", ANA).created
    assert schedules.ticks("yearly") == []
    job = app.admin.jobs.get(first.id)
    assert job is not None
    assert (job.task, job.args) == ("work", {"n": 1})


async def test_an_update_changes_what_is_given_and_leaves_the_rest(
    schedules: Schedules, greet: Task[[str, int], None, None]
) -> None:
    before = schedules.create(
        "often",
        "work",
        ANA,
        cron="0 9 * * *",
        timezone=BERLIN,
        args={"n": 1},
        tags=["blue"],
        timeout=60,
        jitter=5,
    )
    after = schedules.update("often", ANA, cron="30 9 * * *", queue="mail", expires_in=60)
    assert after.timing == Timing(cron="30 9 * * *", zone=BERLIN)
    assert (after.job.queue, after.job.args) == ("mail", {"n": 1})
    assert after.job.meta == {"tags": ["blue"], "timeout": 60, "expires_in": 60}
    assert (after.policy, after.version) == (before.policy, before.version + 1)

    every = await schedules.aupdate("often", ANA, every=60, missed="skip", args={"n": 2})
    assert every.timing == Timing(every=MINUTE)
    assert (every.policy.missed, every.policy.jitter) == (Missed.SKIP, 5 * SECOND)
    assert every.job.args == {"n": 2}

    with pytest.raises(InvalidValue, match="cannot be called so"):
        schedules.update("often", ANA, task=greet)
    greeting = schedules.update("often", ANA, task=greet, args={"name": "Ada"})
    assert (greeting.job.task, greeting.job.queue, greeting.job.meta) == ("greet", "mail", {})
    with pytest.raises(InvalidValue, match="no change given for schedule 'often'"):
        schedules.update("often", ANA)
    with pytest.raises(InvalidValue, match="jitter must be a value"):
        schedules.update("often", ANA, jitter="declared")


async def test_of_what_code_declares_an_operator_sets_the_policies_and_gives_them_back(
    db: Database, app: Tenure, schedules: Schedules
) -> None:
    await declared(db)
    row = schedules.update("nightly", ANA, missed="skip", jitter=60)
    assert (row.in_force.missed, row.in_force.jitter) == (Missed.SKIP, MINUTE)
    assert (row.policy.missed, row.policy.jitter) == (Missed.LATEST, timedelta(0))
    assert schedules.update("nightly", ANA, missed_limit=5).set_policy == PolicyChange(
        missed=Missed.SKIP, jitter=MINUTE, missed_limit=5
    )
    row = schedules.update("nightly", ANA, missed="declared", jitter="declared")
    assert row.set_policy == PolicyChange(missed_limit=5)
    [newest, *_] = app.admin.audit.list("schedule:nightly")
    assert (newest.actor, newest.action) == ("ana", "schedule.set_policy")


async def test_what_code_declares_is_changed_in_the_code(
    db: Database, schedules: Schedules
) -> None:
    await declared(db)
    with pytest.raises(
        InvalidValue, match="declared in the code of 'shop'; change cron, queue there"
    ):
        schedules.update("nightly", ANA, cron="* * * * *", queue="mail", missed="skip")
    with pytest.raises(InvalidValue, match="missed_limit must be 1 to 10,000"):
        schedules.update("nightly", ANA, missed_limit=0)
    with pytest.raises(InvalidValue, match="remove it there, or pause it"):
        schedules.delete("nightly", ANA)
    row = schedules.get("nightly")
    assert row is not None
    assert row.set_policy == PolicyChange()


def test_days_on_which_the_clock_changes_are_flagged(schedules: Schedules) -> None:
    """Shows R25, R28."""
    schedules.create("night", "work", ANA, cron="30 2 * * *", timezone=BERLIN, jitter=600)
    runs = schedules.preview("night", count=3, after=datetime(2027, 3, 27, tzinfo=UTC))
    assert [f"{run.local:%d. %H:%M %z}" for run in runs] == [
        "27. 02:30 +0100",
        "28. 03:00 +0200",
        "29. 02:30 +0200",
    ]
    assert [run.moved for run in runs] == [False, True, False]
    assert [run.shift is not None for run in runs] == [False, True, False]
    assert all(timedelta(0) <= run.run_at - run.fire_at < 10 * MINUTE for run in runs)
    assert len({run.run_at - run.fire_at for run in runs}) == 3
    assert runs == schedules.preview("night", count=3, after=datetime(2027, 3, 27, tzinfo=UTC))


def test_a_timing_that_no_schedule_has_is_previewed_without_a_database() -> None:
    """Shows R24, R25."""
    nowhere = Tenure("postgresql://127.0.0.1:1/none")
    october = datetime(2027, 10, 30, 12, tzinfo=UTC)
    [run] = nowhere.admin.schedules.preview_timing(
        cron="30 2 * * *", timezone=BERLIN, count=1, after=october
    )
    assert run.fire_at == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert run.shift is not None
    assert run.shift.by == timedelta(hours=-1)
    assert len(nowhere.admin.schedules.preview_timing(every=0.5 * 60)) == 10
    with pytest.raises(InvalidValue, match="five"):
        nowhere.admin.schedules.preview_timing(cron="* * *")
    with pytest.raises(InvalidValue, match="count must be from 1 to 1,000, got 0"):
        nowhere.admin.schedules.preview_timing(every=60, count=0)


async def test_one_that_its_program_dropped_has_no_runs_to_come(
    db: Database, schedules: Schedules
) -> None:
    await declared(db)
    await db.run(db.store.schedules.declare("shop", [2], []))
    assert schedules.preview("nightly") == []
    assert schedules.delete("nightly", ANA).state is ScheduleState.RETIRED
