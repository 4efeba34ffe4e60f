"""Every public name of `tenure`, every parameter and every member is in the reference, and
nothing is there that does not exist."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

import tenure
from tenure import (
    AsyncJob,
    Backoff,
    Draft,
    Handle,
    Job,
    JobEvent,
    Tenure,
    WorkerEvent,
    _schedule_spec,
)
from tenure._model.event import EVENTS
from tenure._rules.runtime_settings import SETTINGS
from tenure.admin import Admin, Filter, Operations, Schedules, Tokens
from tenure.admin._commands import SubGroup
from tenure.config import Defaults
from tenure.contrib.otel import instrument
from tenure.contrib.starlette import lifespan
from tenure.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def section(page: str, title: str) -> str:
    """A page's text from this heading to the next of its kind; the beginning for ''."""
    parts = re.split(r"^## (.*)\n", (DOCS / page).read_text(), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))[title]


def first_column(page: str, title: str, table: int = 0) -> set[str]:
    """The names that begin the rows of a section's table."""
    tables = re.findall(r"(?:^\|.*\n)+", section(page, title), re.MULTILINE)
    return set(re.findall(r"^\| `(\w+)` \|", tables[table], re.MULTILINE))


def parameters(function: Callable[..., Any]) -> set[str]:
    """The names of what can be passed by name; for `**fields`, the names of its TypedDict."""
    of = inspect.signature(function).parameters.values()
    names = {p.name for p in of if p.kind not in (p.POSITIONAL_ONLY, p.VAR_KEYWORD)}
    for spread in (p.name for p in of if p.kind is p.VAR_KEYWORD):
        [fields] = get_type_hints(function, localns=vars(_schedule_spec))[spread].__args__
        names |= fields.__optional_keys__
    return names - {"self"}


def members(kind: type, *more: str) -> set[str]:
    """The public names of a class, and of its instances."""
    return {name for name in dir(kind) if not name.startswith("_")} | set(more)


def test_every_public_name_is_documented() -> None:
    assert first_column("python.md", "") == set(tenure.__all__)


@pytest.mark.parametrize(
    ("title", "function"),
    [
        ("Tenure(…)", Tenure.__init__),
        ("@app.task(…)", Tenure.task),
        ("@app.schedule(…)", Tenure.schedule),
        ("using(…)", Task.using),
        ("Backoff(…)", Backoff),
        ("app.run(…)", Tenure.run),
        ("tenure.contrib.starlette", lifespan),
        ("tenure.contrib.otel", instrument),
    ],
)
def test_every_parameter_is_documented(title: str, function: Callable[..., Any]) -> None:
    assert first_column("python.md", title) == parameters(function)


def test_every_member_of_an_app_is_documented() -> None:
    app = members(Tenure, *(name for name in vars(Tenure()) if not name.startswith("_")))
    assert first_column("python.md", "Tenure(…)", 1) == app


def test_every_member_of_a_task_is_documented() -> None:
    assert first_column("python.md", "@app.task(…)", 1) == members(Task)


def test_every_member_of_an_enqueued_jobs_handle_is_documented() -> None:
    assert first_column("python.md", "Handle") == members(Handle, "id", "created")


@pytest.mark.parametrize("kind", [Job, AsyncJob])
def test_every_member_of_a_running_jobs_handle_is_documented(kind: type) -> None:
    assert first_column("python.md", "Job and AsyncJob") == members(kind)
    assert first_column("python.md", "Job and AsyncJob", 1) == parameters(Job.progress)


def test_every_event_and_what_is_told_with_it_is_documented() -> None:
    title = "@app.on(…)"
    assert first_column("python.md", title) == set(EVENTS)
    assert first_column("python.md", title, 1) == set(JobEvent._fields)
    assert first_column("python.md", title, 2) == {f.name for f in dataclasses.fields(WorkerEvent)}


def test_everything_about_middleware_is_documented() -> None:
    title = "@app.middleware(…)"
    assert first_column("python.md", title, 1) == parameters(Tenure.middleware)
    assert first_column("python.md", title, 2) == members(Draft, "meta", "id", "created")


def test_what_is_a_coroutine_of_the_async_handle_is_marked_so() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| \*await\* \|", section("python.md", "Job and AsyncJob"), re.MULTILINE
    )
    coroutines = inspect.getmembers(AsyncJob, inspect.iscoroutinefunction)
    assert set(rows) == {name for name, _ in coroutines}


def test_what_a_handler_can_raise_is_documented_with_what_becomes_of_the_job() -> None:
    table = section("python.md", "What a handler says by its end")
    for name in ("Retry", "GiveUp", "Cancel", "Snooze", "LeaseLost", "Stopped", "give_up_on"):
        assert name in table


def commands(group: object) -> set[str]:
    """The names of a group's commands, without their async twins."""
    verbs = {name for name in dir(group) if not name.startswith("_")}
    return verbs - {name for name in verbs if name.startswith("a") and name[1:] in verbs}


def test_every_verb_of_an_operator_is_named() -> None:
    """A group with a table of its own is only named: the tests below hold its table."""
    table = section("python.md", "app.admin").split("|---|---|")[1]
    rows = re.findall(r"^\| .*? \| (?:`(\w+)`: )?(.*) \|$", table, re.MULTILINE)
    named = {group: set(re.findall(r"`(\w+)`", text)) for group, text in rows}
    admin = Tenure("postgresql://127.0.0.1:1/none").admin
    groups = {name for name, value in vars(Admin).items() if isinstance(value, SubGroup)}
    assert named.pop("") == commands(Admin) - groups
    assert set(named) == groups
    for group, names in named.items():
        assert names in (set(), commands(getattr(admin, group))), group


def test_every_verb_over_schedules_and_what_it_takes_is_documented() -> None:
    """Shows R28."""
    assert first_column("python.md", "app.admin.schedules") == commands(Schedules)
    for verb in (Schedules.create, Schedules.update):
        taken = parameters(verb.describe) - {"name", "by"}
        assert first_column("python.md", "app.admin.schedules", 1) == taken


def test_every_verb_over_operations_and_every_field_of_a_filter_is_documented() -> None:
    """Shows R15, R36."""
    assert first_column("python.md", "app.admin.operations") == commands(Operations)
    page = section("operations.md", "Start one").partition("field of `Filter`")[2]
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert named == {field.name for field in dataclasses.fields(Filter)}


def test_every_verb_over_access_tokens_is_documented() -> None:
    assert first_column("access.md", "In Python") == commands(Tokens)


def test_every_built_in_value_is_a_setting_or_a_constant_in_the_reference() -> None:
    constants = set(re.findall(r"^- `(\w+)`", section("settings.md", "Constants"), re.MULTILINE))
    fields = {field.name for field in dataclasses.fields(Defaults)}
    assert constants <= fields
    for name in fields - constants:
        assert any(setting.startswith(name) for setting in SETTINGS), name
