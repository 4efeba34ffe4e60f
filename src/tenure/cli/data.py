"""Data, on stdout: JSON for programs, tables for people. Words are elsewhere."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tenure.cli.words import safe

_WIDEST = 10_000


def print_json(value: object) -> None:
    """One JSON document, in ASCII, so that any pipe carries it."""
    from tenure.admin import plain

    sys.stdout.write(json.dumps(plain(value)) + "\n")


def print_lines(lines: Iterable[str]) -> None:
    """One line each."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table as wide as the terminal, or as wide as it needs where nobody looks; without the
    columns that have nothing in any row."""
    kept = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    _print(
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
    )


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, without those that have none."""
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
    """A value as a cell shows it: an instant in UTC, what JSON has as JSON, nothing as a dash."""
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
