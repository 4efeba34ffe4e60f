"""`@app.schedule(…)`: what a program declares, and what it is told where that cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from tenure import Tenure
from tenure._model.job import NewJob
from tenure._model.schedule import Missed, NewSchedule, Overlap, Policy, Timing
from tenure._rules.schedules import check
from tenure.errors import InvalidValue, PayloadError
from tests.app.acts import script

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenure import AsyncJob, Job

HOUR = timedelta(hours=1)


@pytest.fixture
def app() -> Tenure:
    """An app that never asks a database."""
    return Tenure("postgresql://host/none")


def refusal(declare: Callable[[], object]) -> str:
    with pytest.raises(InvalidValue) as refused:
        declare()
    return str(refused.value)


def test_a_schedule_is_declared_with_its_times_its_job_and_its_policy(app: Tenure) -> None:
    """Shows R24. Shows R25."""

    @app.schedule(
        "0 9 * * 1-5",
        timezone="Europe/Berlin",
        name="mornings",
        args={"to": "ada"},
        missed="all",
        missed_within=7200,
        missed_limit=3,
        overlap="skip",
        jitter=timedelta(seconds=30),
    )
    @app.task(name="report", queue="mail", priority=7, max_attempts=2, lease=60, expires_in=HOUR)
    def report(to: str, copies: int = 1) -> None: ...

    assert dict(app.declared) == {
        "mornings": NewSchedule(
            name="mornings",
            timing=Timing(cron="0 9 * * 1-5", zone="Europe/Berlin"),
            job=NewJob(
                "report",
                queue="mail",
                args={"to": "ada"},
                priority=7,
                max_attempts=2,
                lease=timedelta(seconds=60),
                meta={"expires_in": 3600.0},
            ),
            policy=Policy(
                missed=Missed.ALL,
                missed_within=timedelta(hours=2),
                missed_limit=3,
                overlap=Overlap.SKIP,
                jitter=timedelta(seconds=30),
            ),
        )
    }


def test_what_is_decorated_comes_back_as_it_was_and_the_schedule_has_its_name(app: Tenure) -> None:
    @app.task(name="report")
    def report() -> str:
        return "here"

    assert app.schedule(every=60)(report) is report
    assert report() == "here"
    assert app.declared["report"].policy == Policy()
    assert app.declared["report"].timing == Timing(every=timedelta(minutes=1))


def test_a_time_is_once_and_the_same_instant_in_whatever_zone(app: Tenure) -> None:
    """Shows R24."""
    berlin = timezone(timedelta(hours=1))

    @app.schedule(at=datetime(2030, 1, 31, 9, tzinfo=berlin))
    @app.task(name="once")
    async def once(job: AsyncJob) -> None: ...

    assert app.declared["once"].timing.at == datetime(2030, 1, 31, 8, tzinfo=UTC)


def test_schedules_are_in_the_order_of_their_declaration_and_a_second_one_has_a_name(
    app: Tenure,
) -> None:
    @app.schedule("@daily", name="daily")
    @app.schedule("@hourly")
    @app.task(name="b")
    def b() -> None: ...

    @app.schedule(every=60)
    @app.task(name="a")
    def a() -> None: ...

    assert list(app.declared) == ["b", "daily", "a"]
    of_the_task: Any = {"queue": "mail"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'queue'"):
        app.schedule("@daily", name="c", **of_the_task)(a)
    assert len(app.declared) == 3


def test_duplicate_schedule_name_is_refused(app: Tenure) -> None:
    @app.schedule("@daily")
    @app.task(name="report")
    def report() -> None: ...

    @app.task(name="other")
    def other() -> None: ...

    reported = refusal(lambda: app.schedule("@hourly")(report))
    assert reported == (
        "two schedules are named 'report', of report and of report; give one of them another "
        'name, as in name="report-2"'
    )
    assert "of report and of other" in refusal(lambda: app.schedule("@daily", name="report")(other))
    # The same, once more, changes nothing.
    app.schedule("@daily")(report)
    assert len(app.declared) == 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (None, "missing a required argument: 'to'"),
        ({"to": "ada", "at": 1}, "got an unexpected keyword argument 'at'"),
        ({"to": 5}, "argument 'to' is"),
        ({1: "ada"}, "keywords must be strings"),
    ],
)
def test_arguments_that_do_not_fit_the_task_are_refused_where_they_are_written(
    app: Tenure, args: Any, why: str
) -> None:
    @app.task(name="report")
    def report(job: Job, to: str) -> None: ...

    reported = refusal(lambda: app.schedule("@daily", args=args)(report))
    assert reported.startswith("the schedule 'report' cannot call its task: ")
    assert why in reported
    assert reported.endswith('; write the arguments as in args={"name": value}')


def test_arguments_are_by_name(app: Tenure) -> None:
    @app.task(name="report")
    def report(to: str) -> None: ...

    wrong: Any = ["ada"]
    reported = refusal(lambda: app.schedule("@daily", args=wrong)(report))
    assert reported == "args must be a dict of names and values, got ['ada']; write args={…}"


def test_arguments_that_cannot_be_stored_are_refused(app: Tenure) -> None:
    @app.task(name="report")
    def report(share: float) -> None: ...

    with pytest.raises(PayloadError, match="JSON does not have"):
        app.schedule("@daily", args={"share": float("nan")})(report)


@dataclass
class Later:
    """Known at the end of the module only."""

    name: str


def test_a_schedule_does_not_fix_annotations_before_they_can_be_read(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(globals(), "Later")

    @app.schedule("@daily", args={"whom": {"name": "Ada"}})
    @app.task(name="report")
    def report(whom: Later) -> None: ...

    monkeypatch.undo()
    assert report.definition.parameters.load({"whom": {"name": "Ada"}}) == (
        [],
        {"whom": Later("Ada")},
    )


def test_undecorated_function_is_refused_with_the_decorator_order(app: Tenure) -> None:
    def report() -> None: ...

    schedule: Any = app.schedule("@daily")
    reported = refusal(lambda: schedule(report))
    assert "report is not a task yet; write @app.schedule(…) above @app.task" in reported


def test_a_task_of_another_app_is_refused(app: Tenure) -> None:
    @Tenure().task(name="report")
    def report() -> None: ...

    assert "report is a task of another app" in refusal(lambda: app.schedule("@daily")(report))


def test_missing_time_names_the_fix(app: Tenure) -> None:
    @app.task(name="report")
    def report() -> None: ...

    bare: Any = app.schedule
    assert refusal(lambda: bare(report)).startswith(
        '@app.schedule needs a time; write @app.schedule("0 9 * * 1-5"'
    )
    assert "cron must be a str, got 60; write @app.schedule(" in refusal(lambda: bare(60))
    assert "give one of cron=" in refusal(lambda: app.schedule()(report))
    assert "only one of cron=, every= and at=, got cron and every" in refusal(
        lambda: app.schedule("@daily", every=60)(report)
    )
    assert not app.declared


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"missed": "none"}, "missed must be one of 'skip', 'latest', 'all', got 'none'"),
        ({"overlap": "no"}, "overlap must be one of 'allow', 'skip', got 'no'"),
        ({"missed_limit": 0}, "missed_limit must be 1 to 10,000, got 0; "),
        ({"missed_limit": 10_001}, "missed_limit must be 1 to 10,000, got 10001; "),
        ({"missed_within": 0}, "missed_within must be positive and at most"),
        ({"missed_within": timedelta(days=36_501)}, "and at most 36,500 days"),
        ({"jitter": -1}, "jitter must be 0 to 86,400 seconds"),
        ({"jitter": 86_401}, "jitter must be 0 to 86,400 seconds"),
        ({"jitter": "5m"}, "jitter must be a number of seconds or a timedelta, got '5m'"),
        ({"every": "5m"}, "every must be a number of seconds or a timedelta, got '5m'"),
        ({"every": float("nan")}, "every must be a number of seconds or a timedelta, got nan"),
        ({"name": "my report"}, "schedule name must be 1 to 200 letters"),
        ({"name": "@schedules"}, "schedule name must be 1 to 200 letters"),
    ],
)
def test_contradictory_options_are_refused_with_the_fix(
    app: Tenure, given: dict[str, Any], reported: str
) -> None:
    @app.task(name="report")
    def report() -> None: ...

    assert reported in refusal(lambda: app.schedule(**({"every": 60} | given))(report))
    assert not app.declared


@pytest.mark.parametrize(
    "job",
    [NewJob("work", key="k"), NewJob("work", delay=HOUR), NewJob("work", run_at=datetime.now(UTC))],
)
def test_job_with_its_own_time_or_key_does_not_belong_to_a_schedule(job: NewJob) -> None:
    """A tick gives it both."""
    reported = refusal(lambda: check(NewSchedule(name="s", timing=Timing(every=HOUR), job=job)))
    assert reported.endswith("its ticks set them; omit them")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ()),
        ("2026.11.15", (2026, 11, 15)),
        ("v1.20", (1, 20)),
        ("V1.2.0.0", (1, 2)),
        (" 7 ", (7,)),
        (7, (7,)),
        ("0.0", ()),
        (0, ()),
        (20261115143000, (20261115143000,)),
    ],
)
def test_a_version_is_numbers_that_can_be_compared(
    given: str | int | None, expected: tuple[int, ...]
) -> None:
    assert Tenure(version=given).version == expected


def test_versions_are_ordered_by_their_numbers() -> None:
    reported = ["1", "1.0.1", "1.2", "v1.10", "2026.9.30", "2026.11.2"]
    assert sorted(reported, key=lambda given: tuple(Tenure(version=given).version)) == reported
    assert Tenure(version="1.0").version == Tenure(version=1).version


@pytest.mark.parametrize(
    "given", ["3f2a9c1", "1.2rc1", "", "1..2", "-1", -1, True, 2.5, "1,2", "١", 2**63]
)
def test_a_version_without_an_order_is_refused_with_what_to_write(given: Any) -> None:
    reported = refusal(lambda: Tenure(version=given))
    assert reported.startswith("version must be numbers that grow with every release, got ")
    assert reported.endswith(
        f'got {given!r}; write it as version="2026.11.15", or use a build number'
    )


def test_program_defaults_to_the_module_of_the_app() -> None:
    assert Tenure().program == __name__
    assert Tenure(program="shop").program == "shop"
    assert "the program's name must have 1 to 400 characters" in refusal(
        lambda: Tenure(program="").program
    )


NAMES = """
from tenure import Tenure

class Ours(Tenure):
    def __init__(self) -> None:
        super().__init__(program=None)

print(Tenure().program, Ours().program)
"""


def test_a_program_that_is_being_run_has_the_name_that_others_import_it_by(tmp_path: Path) -> None:
    done = script(tmp_path, NAMES)
    [name] = set(done.stdout.split())
    assert (tmp_path / f"{name}.py").exists()


COST = """
import sys
from tenure import Tenure
app = Tenure("postgresql://host/none")
@app.task
def work() -> None: ...
app.declared, app.program, app.version
print(*({"cronsim", "zoneinfo"} & set(sys.modules)))
app.schedule("@daily")(work)
print(*sorted({"cronsim", "zoneinfo", "psycopg"} & set(sys.modules)))
"""


def test_only_a_program_with_schedules_pays_for_them(tmp_path: Path) -> None:
    assert script(tmp_path, COST).stdout == "\ncronsim zoneinfo\n"
