"""`tenure doctor`: check the installation, and print a fix for each problem."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit, hidden
from tenure.cli.options import CommandContext, operator_command
from tenure.cli.output import print_json, print_lines, print_note, safe
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenure.types import Finding


def doctor(
    ctx: CommandContext,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:APP]",
            help="Check the database and Redis of this app.",
            show_default="those in the settings",
        ),
    ] = None,
) -> int:
    """Check the installation, and print a fix for each problem.

    Runs the checks `database`, `durability`, `clock`, `wakeups`, `redis`, `privileges`,
    `security`, `schema`, `retention`, `vacuum`, `horizon` (transactions that block vacuum),
    `workers`, `queues`, `tasks`, `leases`, `schedules`, `tokens` and `notices`. Exits with 1 if
    there is a problem. If there are only warnings, exits with 0. With an app, `--database-url` and
    `--schema` are ignored.

    JSON: `problems` (how many there are) and `findings`.
    """
    from tenure.admin import examine
    from tenure.types import Level

    findings = (
        examine(ctx.database_url, schema=ctx.schema) if target is None else _examine_app(target)
    )
    problems = sum(finding.level is Level.PROBLEM for finding in findings)
    if ctx.as_json:
        print_json({"findings": findings, "problems": problems})
    else:
        print_lines(_lines(findings, ctx.database_url))
    print_note(f"{len(findings)} findings, {problems} of them problems")
    return Exit.FAILED if problems else Exit.DONE


def _examine_app(target: str) -> "Sequence[Finding]":
    from tenure.worker.loader import load

    try:
        app = load(target)
    except TenureError:
        raise
    except Exception as error:
        raise CommandError(
            "the app cannot be loaded",
            f"{type(error).__name__}: {error}",
            "fix the error, or omit the app",
        ) from error
    try:
        return app.admin.doctor()
    finally:
        app.close()


def _lines(findings: "Sequence[Finding]", url: str | None) -> "Iterator[str]":
    for finding in findings:
        yield f"{finding.level:<8} {finding.subject:<10} {hidden(safe(finding.what), url)}"
        if finding.why:
            yield f"{'':<19} why: {safe(finding.why)}"
        if finding.todo:
            yield f"{'':<19} do:  {safe(finding.todo)}"


def add_command(app: typer.Typer) -> None:
    """Add `tenure doctor`."""
    operator_command(app, "doctor", example="tenure doctor jobs:app", check=False)(doctor)
