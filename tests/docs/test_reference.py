"""What can be met by a user is in the reference: settings, states, reasons, outcomes, errors."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import surfaces
from tenure import errors
from tenure._model.access import Scope, TokenState
from tenure._model.attempt import AttemptOutcome
from tenure._model.diagnostics import FindingCode
from tenure._model.explanation import ExplanationCode
from tenure._model.job import State
from tenure._model.lease import RenewStatus, SettleStatus
from tenure._model.operation import ItemOutcome, OperationKind, OperationState
from tenure._model.overview import AlertCode, Overview, OverviewCounts, TargetKind
from tenure._model.results import CancelStatus, DeleteStatus, RetryStatus
from tenure._model.schedule import Missed, Overlap, ScheduleState, TickOutcome, TickReason
from tenure._model.selector import JobView, Selector
from tenure._rules import selector_syntax
from tenure._rules.runtime_settings import SETTINGS
from tenure._rules.secret_names import PARTS, WORDS
from tenure._settings import PROGRAM_SETTINGS
from tenure._store.postgres.roles import ROLES

if TYPE_CHECKING:
    from enum import StrEnum

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "reference"


def words(page: str) -> set[str]:
    """What stands in code marks in the tables of a page."""
    rows = [row for row in (DOCS / page).read_text().splitlines() if row.startswith("|")]
    return set(re.findall(r"`([\w.]+)`", "\n".join(rows)))


def test_every_setting_is_documented_and_none_that_is_not_there() -> None:
    """Shows R38."""
    text = (DOCS / "settings.md").read_text().partition("## Installation settings")[2]
    assert re.findall(r"^\| `(\w+)`", text, re.MULTILINE) == list(SETTINGS)


def test_every_setting_of_a_program_is_documented_with_its_variable_and_its_argument() -> None:
    text = (DOCS / "settings.md").read_text().partition("## Installation settings")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)`.*? \| (.*?) \| (.*?) \|", text, re.MULTILINE)
    assert [row[0] for row in rows] == list(PROGRAM_SETTINGS)
    for name, variable, argument, built_in in rows:
        source = PROGRAM_SETTINGS[name]
        assert variable == f"TENURE_{name.upper()}"
        assert source.argument in argument
        if source.built_in is not None:
            shown = str(source.built_in).lower().removesuffix(".0")
            assert built_in.strip("`") == shown


@pytest.mark.parametrize(
    "names",
    [State, AttemptOutcome, RenewStatus, SettleStatus, CancelStatus, RetryStatus, DeleteStatus],
)
def test_every_state_outcome_and_answer_is_documented(names: type[StrEnum]) -> None:
    """Shows R12."""
    assert {str(name) for name in names} <= words("states.md")


@pytest.mark.parametrize("names", [ScheduleState, TickOutcome, TickReason])
def test_every_state_of_a_schedule_and_of_a_tick_is_documented(names: type[StrEnum]) -> None:
    """Shows R28."""
    assert {str(name) for name in names} <= words("states.md")


@pytest.mark.parametrize("names", [OperationState, ItemOutcome])
def test_every_state_of_an_operation_and_of_an_item_is_documented(names: type[StrEnum]) -> None:
    """Shows R15."""
    assert {str(name) for name in names} <= words("states.md")


def test_every_field_of_a_selector_is_documented_with_an_example_of_it() -> None:
    """Shows R36."""
    text = (DOCS / "selectors.md").read_text()
    rows = re.findall(r"^\| `([\w.…]+):` \|.*\| `(.+)` \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(selector_syntax.FIELDS)
    for name, example in rows:
        intended = selector_syntax.parse(example)
        assert getattr(intended, name.removesuffix(".…")), name
        assert intended == replace(
            Selector(), **{(f := name.removesuffix(".…")): getattr(intended, f)}
        )


def test_every_state_that_a_selector_can_name_is_documented() -> None:
    text = (DOCS / "selectors.md").read_text().partition("\n## States")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(JobView)


def test_every_kind_of_operation_is_documented() -> None:
    assert {str(kind) for kind in OperationKind} <= words("operations.md")
    [kinds] = re.findall(r"^Its kinds are (.*?)\.", (DOCS / "states.md").read_text(), re.MULTILINE)
    assert re.findall(r"`(\w+)`", kinds) == [str(kind) for kind in OperationKind]


@pytest.mark.parametrize("names", [Missed, Overlap])
def test_every_policy_of_a_schedule_is_documented(names: type[StrEnum]) -> None:
    assert {str(name) for name in names} <= words("schedules.md")


@pytest.mark.parametrize("names", [Scope, TokenState])
def test_every_scope_and_state_of_an_access_token_is_documented(names: type[StrEnum]) -> None:
    text = (DOCS / "access.md").read_text()
    assert {str(name) for name in names} <= set(
        re.findall(r"^\| `([\w:]+)` \|", text, re.MULTILINE)
    )


def test_every_name_that_is_hidden_by_itself_is_documented() -> None:
    text = (DOCS / "access.md").read_text().partition("## Redacted fields")[2]
    named = re.findall(r"`(\w+)`", text)
    assert {*PARTS, *WORDS} <= {name.replace("_", "") for name in named}


def test_every_role_of_the_database_is_documented() -> None:
    text = (ROOT / "docs/how-to/database-roles.md").read_text()
    assert re.findall(r"^\| `tenure_(\w+)` \|", text, re.MULTILINE) == list(ROLES)


def test_every_place_where_a_job_can_stand_is_documented_in_the_order_of_the_answers() -> None:
    text = (DOCS / "stats.md").read_text().partition("## Where a job stands")[2]
    text = text.partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [
        str(code) for code in ExplanationCode
    ]


def test_everything_of_an_overview_is_documented() -> None:
    """Shows R35."""
    text = (DOCS / "stats.md").read_text().partition("## All of it at a glance")[2]
    overview, numbers, codes = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert _first(overview) == [field.name for field in dataclasses.fields(Overview)]
    assert set(_first(numbers)) == {field.name for field in dataclasses.fields(OverviewCounts)}
    assert _first(codes) == [str(code) for code in AlertCode]
    assert all(f"`{kind}`" in text for kind in TargetKind)


def test_every_fault_that_the_doctor_finds_is_documented() -> None:
    """Shows R35."""
    table = re.findall(r"(?:^\|.*\n)+", (DOCS / "doctor.md").read_text(), re.MULTILINE)[0]
    assert _first(table) == [str(fault) for fault in FindingCode]
    subjects = set(re.findall(r"^\| `\w+` \| `(\w+)`", table, re.MULTILINE))
    section = (DOCS / "commands.md").read_text().partition("## `tenure doctor")[2]
    checks = re.findall(r"^Runs the checks .*", section, re.MULTILINE)[0].partition(" Exits ")[0]
    assert subjects == set(re.findall(r"`(\w+)`", checks))


def _first(table: str) -> list[str]:
    """The names in the first column of a table, in their order."""
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(cells))


def test_every_reason_that_a_statement_or_rule_gives_is_documented() -> None:
    given = surfaces.reasons()
    assert {"worker_done", "invalid_arguments", "expired", "handler"} <= given
    assert given <= words("states.md")


def test_every_error_is_documented_with_its_place_in_the_tree() -> None:
    found = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.TenureError)
    }
    rows = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "errors.md").read_text(), re.MULTILINE))
    assert found == rows
    assert errors.__doc__ is not None
    assert all(name in errors.__doc__ for name in found)


def test_exceptions_raised_into_a_handler_are_documented_base_exceptions() -> None:
    others = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, BaseException) and not issubclass(kind, errors.TenureError)
    }
    assert others == {"Stopped"}
    assert others <= words("errors.md")
    assert not issubclass(errors.Stopped, Exception)


def test_every_line_of_the_log_that_is_explained_can_be_met() -> None:
    """What stands between two … is in a message of the source, with its values left out."""
    table = (DOCS / "logs.md").read_text().partition("## Log lines")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (?:info|warning|error) \|", table, re.MULTILINE)
    assert len(rows) > 20
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "tenure").rglob("*.py"))
    messages = re.sub(r'"\s+"', "", source)
    messages = re.sub(r"%(?:r|s|g|d|\.\d+f)", "…", messages)
    names = set(re.findall(r'^    name = "(\w+)"', source, re.MULTILINE))
    for line in re.findall(r"`(.*?)`", "\n".join(rows)):
        assert line in messages or line.removesuffix(": …") in names, line


def test_every_verb_of_the_store_has_its_statement_by_its_name() -> None:
    """One word per concept: a verb, its method and its file are the same word."""
    sql = {path.stem for path in (ROOT / "src/tenure/_store/postgres/sql").glob("*.sql")}
    verbs = (
        "enqueue claim renew progress settle rescue cancel revoke hold resume retry discard move "
        "delete heartbeat heartbeat_many"
    )
    assert set(verbs.split()) <= sql
