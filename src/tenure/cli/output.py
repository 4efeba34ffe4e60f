"""JSON, tables, messages and the progress bar."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenure.types import AuditRow


def safe(text: object) -> str:
    """Return the text on one line, with control characters escaped."""
    return _escaped(" ".join(str(text).split()))


def safe_lines(text: str) -> list[str]:
    """Return the text's lines with their indentation, and with control characters escaped."""
    return [_escaped(line) for line in text.expandtabs().splitlines()]


def _escaped(line: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def print_note(text: str) -> None:
    """Print one line to stderr."""
    sys.stderr.write(f"{safe(text)}\n")


def print_error(what: str, why: str, todo: str) -> None:
    """Print an error in three lines: what, why, what to do."""
    sys.stderr.write(f"error: {safe(what)}\nwhy:   {safe(why)}\ndo:    {safe(todo)}\n")


_WIDEST = 10_000


def print_json(value: object) -> None:
    """Print one JSON document, in ASCII for any terminal encoding."""
    from tenure.admin import to_json

    sys.stdout.write(json.dumps(to_json(value)) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, leaving out empty columns.

    It's as wide as the terminal, or as wide as necessary if stdout isn't a terminal.
    """
    kept = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    _print(
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
    )


def print_rows(
    rows: "Sequence[Any]", *columns: "str | tuple[str, str | Callable[[Any], object]]"
) -> None:
    """Print a table. A column is a field name, or a heading with a field name or a function."""
    named = [(column, column) if isinstance(column, str) else column for column in columns]
    getters = [attrgetter(get) if isinstance(get, str) else get for _, get in named]
    print_table([name for name, _ in named], [[get(row) for get in getters] for row in rows])


def print_page_end(count: int, option: str, more: object) -> None:
    """Print how many rows were shown, and how to continue."""
    print_note(f"{count} shown; {f'more may follow: {option} {more}' if more else 'no more'}")


def print_audit(rows: "Sequence[AuditRow]") -> None:
    """Print one target's audit log."""
    print_rows(rows, "at", ("by", "actor"), ("from", "source"), "action", "reason")


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, omitting empty values."""
    _print(None, [(name, value) for name, value in fields.items() if value not in (None, "")])


def _print(columns: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns or (), box=None, pad_edge=False, show_header=columns is not None)
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    console = Console(width=_WIDEST, highlight=False)
    with console.capture() as captured:
        console.print(table)
    print_lines(line.rstrip() for line in captured.get().splitlines())


def shown(value: Any) -> str:
    """Return a table cell's text: times in UTC, lists as JSON, None as a dash."""
    match value:
        case None:
            return "-"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            return safe(json.dumps(value, ensure_ascii=False))
        case _:
            return safe(value)


@contextmanager
def bar(title: str) -> "Iterator[Callable[[int, int], None]]":
    """Show a progress bar. The yielded function takes how much is done, and the total."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(title, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield advance
