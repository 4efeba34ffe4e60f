"""An operation from its start to its end, with a bar; a Ctrl-C stops watching, and it goes on."""

import sys
import time
from typing import TYPE_CHECKING

from tenure.cli import operation
from tenure.cli.errors import CommandError, Exit
from tenure.cli.output import bar, print_error, print_fields, print_json, print_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenure.admin import Admin
    from tenure.types import OperationRow

_LOOK = 0.2
_NOBODY_AFTER = 5.0


def start_and_follow(
    admin: "Admin",
    start: "Callable[[bool], OperationRow]",
    *,
    of: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> Exit:
    """Count what matches, ask, start, and watch; what is told at the end is data. `start` is told
    whether it is a dry run; `of` says what the members are."""
    if dry_run or not yes:
        rehearsed = start(True)
        if dry_run:
            return _rehearsed(rehearsed, of, as_json=as_json)
        _ask(f"{rehearsed.kind} {rehearsed.total} {of} at {rehearsed.rate} a second?")
    row, detached = _watched(admin, start(False), of)
    if as_json:
        print_json({"dry_run": False, "detached": detached, "operation": row})
    else:
        print_fields(operation.fields(row))
    if detached:
        print_note(f"it goes on; to see it: tenure operation show {row.id}")
        return Exit.INTERRUPTED
    return _answered(row, of)


def _rehearsed(row: "OperationRow", of: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"dry_run": True, "total": row.total})
    else:
        print_fields({row.kind: row.total})
    print_note(f"nothing was changed; so many {of} match")
    return Exit.DONE


def _ask(question: str) -> None:
    """Return if a person says yes."""
    import typer

    if not sys.stdin.isatty():
        raise CommandError(
            "nobody is here to say yes",
            f"{question} would be asked, and stdin is no terminal",
            "look first with --dry-run, then say --yes",
            Exit.USAGE,
        )
    typer.confirm(question, abort=True, err=True)


def _watched(admin: "Admin", row: "OperationRow", of: str) -> "tuple[OperationRow, bool]":
    """The operation when it has ended, or when somebody had enough of watching, which is told."""
    alone_at = time.monotonic() + _NOBODY_AFTER
    try:
        print_note(f"operation {row.id}: {row.kind} {row.total} {of}; Ctrl-C stops watching")
        with bar(row.kind) as advance:
            while not row.state.is_ended:
                time.sleep(_LOOK)
                row = operation.known(admin, row.id)
                advance(row.done, row.total)
                if row.started_at is None and time.monotonic() > alone_at:
                    print_note(
                        "no worker has begun it yet; one that runs does: tenure worker MODULE:APP"
                    )
                    alone_at = float("inf")
    except KeyboardInterrupt:
        return row, True
    return row, False


def _answered(row: "OperationRow", of: str) -> Exit:
    left = row.total - sum(count for name, count in row.outcomes.items() if name.is_done)
    if not left:
        return Exit.DONE
    print_error(
        f"{left} of {row.total} {of} are as they were",
        f"the operation is {row.state}: {operation.outcomes(row) or 'nothing was done'}",
        f"look at them: tenure operation show {row.id} --outcome …",
    )
    return Exit.PARTIAL if left < row.total else Exit.FAILED
