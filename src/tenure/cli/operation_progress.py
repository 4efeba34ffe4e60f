"""Start an operation and show its progress. Ctrl-C stops watching, not the operation."""

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

_POLL_INTERVAL = 0.2
_NOT_STARTED_AFTER = 5.0


def start_and_follow(
    admin: "Admin",
    start: "Callable[[bool], OperationRow]",
    *,
    of: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> Exit:
    """Count the matches, ask for confirmation, run the operation, follow it, and print the result.

    `start` is called with True for a dry run. `of` is the noun for the items, such as `jobs`.
    """
    if dry_run or not yes:
        counted = start(True)
        if dry_run:
            return _print_dry_run(counted, of, as_json=as_json)
        _ask(f"{counted.kind} {counted.total} {of}, at most {counted.rate} per second?")
    row, detached = _watched(admin, start(False), of)
    if as_json:
        print_json({"dry_run": False, "detached": detached, "operation": row})
    else:
        print_fields(operation.fields(row))
    if detached:
        print_note(f"the operation continues. To see it: tenure operation show {row.id}")
        return Exit.INTERRUPTED
    return _result(row, of)


def _print_dry_run(row: "OperationRow", of: str, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"dry_run": True, "total": row.total})
    else:
        print_fields({row.kind: row.total})
    print_note(f"dry run: {row.total} {of} match; nothing was changed")
    return Exit.DONE


def _ask(question: str) -> None:
    """Ask the user to confirm, and return only if they say yes."""
    import typer

    if not sys.stdin.isatty():
        raise CommandError(
            "the operation was not confirmed",
            f"{question!r} needs an answer, and stdin is not a terminal",
            "check the count with --dry-run, then add --yes",
            Exit.USAGE,
        )
    typer.confirm(question, abort=True, err=True)


def _watched(admin: "Admin", row: "OperationRow", of: str) -> "tuple[OperationRow, bool]":
    """Return the operation once it ends or on Ctrl-C, and whether it was Ctrl-C."""
    warn_at = time.monotonic() + _NOT_STARTED_AFTER
    is_waiting = False
    try:
        print_note(f"operation {row.id}: {row.kind} {row.total} {of}; Ctrl-C stops watching")
        with bar(row.kind) as advance:
            while not row.state.is_ended:
                time.sleep(_POLL_INTERVAL)
                row = operation.known(admin, row.id)
                advance(row.done, row.total)
                if row.started_at is None and time.monotonic() > warn_at:
                    print_note("no worker has started it yet. Start one: tenure worker module:app")
                    warn_at = float("inf")
                if row.waiting and row.done >= row.total and not is_waiting:
                    print_note(
                        f"{row.waiting} jobs still run and were asked to stop. To see them: "
                        f"tenure operation show {row.id} --outcome waiting"
                    )
                    is_waiting = True
    except KeyboardInterrupt:
        return row, True
    return row, False


def _result(row: "OperationRow", of: str) -> Exit:
    left = row.total - sum(count for name, count in row.outcomes.items() if name.is_done)
    if not left:
        return Exit.DONE
    print_error(
        f"{left} of {row.total} {of} are unchanged",
        f"the operation is {row.state}: {operation.outcomes(row) or 'nothing was done'}",
        f"list them: tenure operation show {row.id}",
    )
    return Exit.PARTIAL if left < row.total else Exit.FAILED
