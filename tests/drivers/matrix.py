"""The table of docs/reference/drivers.md, which `just docs-drivers` writes from the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.binaries import ROOT
from support.drivers import DRIVERS

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = ROOT / "docs" / "reference" / "drivers.md"
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"
COLUMNS = {
    "enqueue commits": ("test_an_enqueue_commits_with_the_callers_writes",),
    "enqueue rolls back": (
        "test_an_enqueue_rolls_back_with_the_callers_writes",
        "test_an_enqueue_as_the_first_word_of_a_transaction_is_part_of_it",
    ),
    "completion commits with the caller's writes": (
        "test_a_completion_commits_with_the_handlers_writes",
    ),
    "lost lease rolls them back": ("test_a_lost_lease_rolls_the_handlers_writes_back",),
    "kill -9 between the two: written once": ("test_the_writes_happen_once",),
}
_NO_ASYNC = "no: Django has no async transactions, use a `def`"
# Drivers that cannot, and why. The tests are named in each row.
OTHERS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "Django, in async code": {
        "enqueue commits": (
            "test_async_code_joins_on_the_thread_where_django_keeps_its_connections",
        ),
        "enqueue rolls back": _NO_ASYNC,
        "completion commits with the caller's writes": _NO_ASYNC,
        "lost lease rolls them back": _NO_ASYNC,
        "kill -9 between the two: written once": _NO_ASYNC,
    },
    "psycopg2": dict.fromkeys(COLUMNS, "no: refused"),
}


def render(passed: Mapping[str, set[str]]) -> str:
    """The table; AssertionError if a cell was not shown."""
    lines = ["| driver | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    rows: dict[str, Mapping[str, str | tuple[str, ...]]] = {d.name: COLUMNS for d in DRIVERS}
    for name, cells in (rows | OTHERS).items():
        texts = [_cell(name, cells[column], passed) for column in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _cell(driver: str, shown_by: str | tuple[str, ...], passed: Mapping[str, set[str]]) -> str:
    if isinstance(shown_by, str):
        return shown_by
    for test in shown_by:
        if not passed.get(test, set()) & {driver, ""}:
            raise AssertionError(f"{test} did not pass for {driver}")
    return "yes"


def write(passed: Mapping[str, set[str]]) -> None:
    """Put the table in its place on the page."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{render(passed)}\n{END}{after}")
