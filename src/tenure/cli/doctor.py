"""`tenure doctor`: findings about the installation, each with what to do."""

from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit, hidden
from tenure.cli.options import AsJson, DatabaseUrl, SchemaName
from tenure.cli.output import print_json, print_lines, print_note, safe
from tenure.errors import TenureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenure.types import Finding


def doctor(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE:APP]",
            help="The app whose database and Redis are meant; else those set.",
        ),
    ] = None,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Examine the database, its wakeups and the workers; 1 if there is a problem."""
    from tenure.admin import examine
    from tenure.types import Level

    findings = examine(database_url, schema=schema) if target is None else _app(target)
    problems = sum(found.level is Level.PROBLEM for found in findings)
    if as_json:
        print_json({"findings": findings, "problems": problems})
    else:
        print_lines(_lines(findings, database_url))
    print_note(f"{len(findings)} findings, {problems} of them problems")
    return Exit.FAILED if problems else Exit.DONE


def _app(target: str) -> "Sequence[Finding]":
    from tenure.worker.loader import load

    try:
        app = load(target)
    except TenureError:
        raise
    except Exception as error:
        raise CommandError(
            "the app cannot be loaded",
            f"{type(error).__name__}: {error}",
            "mend that, or leave the app away",
        ) from error
    try:
        return app.admin.doctor()
    finally:
        app.close()


def _lines(findings: "Sequence[Finding]", url: str | None) -> "Iterator[str]":
    for found in findings:
        yield f"{found.level:<8} {found.subject:<10} {hidden(safe(found.what), url)}"
        if found.why:
            yield f"{'':<19} why: {safe(found.why)}"
        if found.todo:
            yield f"{'':<19} do:  {safe(found.todo)}"
