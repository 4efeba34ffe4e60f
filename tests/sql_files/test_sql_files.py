"""The .sql files: one statement each, with a header that is true, and all are used."""

from __future__ import annotations

import ast
import re
from importlib import resources
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from tenure._store.postgres.statements import DEFAULT_SCHEMA, statements, with_includes

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = resources.files("tenure._store.postgres")
FILES = {
    file.name.removesuffix(".sql"): with_includes(file.read_text())
    for file in (PACKAGE / "sql").iterdir()
    if file.name.endswith(".sql")
}
INCLUDES = [file.name.removesuffix(".sql") for file in (PACKAGE / "sql" / "include").iterdir()]
# What sends a statement by its name: the store's own helpers, and the step itself.
SENDERS = {"_query", "_within", "_file", "_simple", "_prune", "_enqueue", "Query"}

every_file = pytest.mark.parametrize("name", sorted(FILES))
# Not a time to judge rows by, but how long the statement waited for the table before it began: by
# then statement_timestamp() is that of the Execute message, which comes after the wait.
WAITED = (
    "clock_timestamp() - coalesce($10::timestamptz, transaction_timestamp()) > interval '1 second'"
)


def header(text: str) -> list[str]:
    return list(takewhile(lambda line: line.startswith("--"), text.splitlines()))


def body(text: str) -> str:
    """The statement without its header and without comments."""
    rest = "\n".join(text.splitlines()[len(header(text)) :])
    return re.sub(r"--.*|/\*.*?\*/", "", rest)


def named(text: str) -> list[tuple[int, str]]:
    first = text.splitlines()[0]
    return [(int(number), name) for number, name in re.findall(r"\$(\d+) (\w+)", first)]


def sent() -> Iterator[str]:
    """Names of statements in the store's code: given to a sender, or gone through in a loop."""
    for module in PACKAGE.iterdir():
        if not module.name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr=called) | ast.Name(id=called),
                    args=[ast.Constant(value=str(name)), *_],
                ) if called in SENDERS:
                    yield name
                case (
                    ast.For(iter=ast.Tuple(elts=pairs))
                    | ast.comprehension(iter=ast.Tuple(elts=pairs))
                ):
                    for pair in pairs:
                        if isinstance(pair, ast.Tuple) and isinstance(pair.elts[0], ast.Constant):
                            yield str(pair.elts[0].value)
                case _:
                    pass


@every_file
def test_the_first_line_names_the_parameters_in_order(name: str) -> None:
    params = named(FILES[name])
    assert [number for number, _ in params] == list(range(1, len(params) + 1))
    assert len({word for _, word in params}) == len(params)
    assert tuple(word for _, word in params) == statements(DEFAULT_SCHEMA)[name].params


@every_file
def test_the_statement_uses_every_parameter_and_no_other(name: str) -> None:
    used = {int(number) for number in re.findall(r"\$(\d+)", body(FILES[name]))}
    assert used == {number for number, _ in named(FILES[name])}


@every_file
def test_every_parameter_has_a_type(name: str) -> None:
    """All of them are sent as text of unknown type; the casts say what they are."""
    cast = {int(number) for number in re.findall(r"\$(\d+)::\w", body(FILES[name]))}
    assert cast == {number for number, _ in named(FILES[name])}


@every_file
def test_the_header_is_short_and_says_what_is_done(name: str) -> None:
    lines = header(FILES[name])
    prose = lines[1:] if named(FILES[name]) else lines
    assert 2 <= len(prose) <= 5
    assert prose[0].endswith((".", "?")) or len(prose) > 2
    assert all(len(line) <= 100 for line in prose)


@every_file
def test_the_header_says_what_is_used_or_locked(name: str) -> None:
    assert re.search(r"-- .*\b(Uses|Reads|Locks|Inserts)\b", "\n".join(header(FILES[name])))


@every_file
def test_a_file_is_one_statement(name: str) -> None:
    text = body(FILES[name])
    assert ";" not in text
    assert re.match(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b", text)


@every_file
def test_every_table_of_ours_has_the_schema_mark(name: str) -> None:
    """Which is also how a file opens in psql: the mark is a comment there."""
    tables = (
        "job|job_archive|job_failed|attempt|job_item|job_key|queue|worker|setting|audit|"
        "schema_version|schedule|schedule_tick|operation|operation_item|api_token|idempotency"
    )
    statement = re.sub(r"--.*", "", FILES[name])
    for keyword in ("FROM", "JOIN", "INTO", "UPDATE"):
        assert not re.search(rf"\b{keyword} ({tables})\b(?! AS \()", statement)


@every_file
def test_only_the_databases_clock_enters_and_never_the_transactions(name: str) -> None:
    text = body(FILES[name]).lower()
    if name == "rescue":
        assert WAITED in text
        text = text.replace(WAITED, "")
    assert "now()" not in text
    assert "current_timestamp" not in text
    assert "transaction_timestamp" not in text


@every_file
def test_the_text_carries_its_name_to_the_servers_statistics(name: str) -> None:
    assert statements(DEFAULT_SCHEMA)[name].text.startswith(f"/* tenure:{name} */ ")


@pytest.mark.parametrize("include", INCLUDES)
def test_every_include_stands_in_several_files_that_give_its_parameters_the_same_numbers(
    include: str,
) -> None:
    part = (PACKAGE / "sql" / "include" / f"{include}.sql").read_text()
    numbers = {int(number) for number in re.findall(r"\$(\d+)", part)}
    users = [
        file.read_text()
        for file in (PACKAGE / "sql").iterdir()
        if file.name.endswith(".sql") and f"/*include {include}*/" in file.read_text()
    ]
    assert len(users) > 1
    shared = [
        [(number, word) for number, word in named(text) if number in numbers] for text in users
    ]
    assert all(params == shared[0] for params in shared)
    assert {number for number, _ in shared[0]} == numbers


def test_no_include_is_left_in_a_statement() -> None:
    assert not [s.name for s in statements(DEFAULT_SCHEMA).values() if "/*include" in s.text]


def test_every_file_is_sent_by_some_operation() -> None:
    assert FILES.keys() - set(sent()) == set()


def test_every_statement_that_is_sent_has_a_file() -> None:
    assert set(sent()) - FILES.keys() == set()
