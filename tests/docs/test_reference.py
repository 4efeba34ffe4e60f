"""What can be met by a user is in the reference: settings, states, reasons, outcomes, errors."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenure import errors
from tenure._model.answers import Cancelling, Retrying
from tenure._model.ending import Ending
from tenure._model.job import State
from tenure._model.lease import Renewed, Settling
from tenure._rules.settings import SETTINGS

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
    rows = re.findall(r"^\| `(\w+)`", (DOCS / "settings.md").read_text(), re.MULTILINE)
    assert rows == list(SETTINGS)


@pytest.mark.parametrize("names", [State, Ending, Renewed, Settling, Cancelling, Retrying])
def test_every_state_outcome_and_answer_is_documented(names: type[StrEnum]) -> None:
    """Shows R12."""
    assert {str(name) for name in names} <= words("states.md")


def test_every_reason_that_a_statement_or_rule_gives_is_documented() -> None:
    source = "\n".join(
        path.read_text()
        for kind in ("*.py", "*.sql")
        for path in (ROOT / "src" / "tenure").rglob(kind)
    )
    given = set(re.findall(r'reason(?:: str)? ?=\s?"(\w+)"', source))
    given |= {"attempts", "poison", "lost", "requested", "revoked"}
    assert "worker_done" in given
    assert given <= words("states.md")


def test_every_error_is_documented_with_its_place_in_the_tree() -> None:
    found = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.TenureError)
    }
    assert found == words("errors.md") - {"sqlstate"}
    assert errors.__doc__ is not None
    assert all(name in errors.__doc__ for name in found)


def test_every_verb_of_the_store_has_its_statement_by_its_name() -> None:
    """One word per concept: a verb, its method and its file are the same word."""
    sql = {path.stem for path in (ROOT / "src/tenure/_store/postgres/sql").glob("*.sql")}
    verbs = "enqueue claim renew progress settle rescue cancel revoke hold resume retry discard"
    assert set(verbs.split()) <= sql
