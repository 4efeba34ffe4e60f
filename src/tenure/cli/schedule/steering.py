"""`tenure schedule pause`, `resume`, `delete` and `run`."""

from typing import Annotated

import typer

from tenure.cli.data import print_json, print_lines
from tenure.cli.exits import Exit
from tenure.cli.options import AsJson, DatabaseUrl, Reason, SchemaName, Who, by, instant, opened
from tenure.cli.schedule import shown
from tenure.cli.schedule.naming import Name, known
from tenure.cli.words import say


def pause(
    name: Name,
    *,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="INSTANT", help="Go on by itself then."),
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a schedule make no jobs, until then or until resumed. Each tick is recorded as paused."""
    then = instant(until)
    with opened(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.pause(name, by(who, reason), until=then)
    if as_json:
        print_json({"schedule": shown.as_data(row)})
    say(f"{name} is {shown.state(row)}; to go on: tenure schedule resume {name}")
    return Exit.DONE


def resume(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a paused schedule make jobs again, from its next tick on."""
    with opened(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.resume(name, by(who, reason))
    if as_json:
        print_json({"schedule": shown.as_data(row)})
    say(f"{name} is {shown.state(row)}; next: {shown.local(row.next_at, row.timing.zone)}")
    return Exit.DONE


def delete(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Remove a schedule that no code declares; its ticks and jobs stay."""
    with opened(database_url, schema) as admin:
        known(admin, name)
        row = admin.schedules.delete(name, by(who, reason))
    if as_json:
        print_json({"schedule": shown.as_data(row)})
    say(f"{name} is deleted; the jobs that it made are as they were")
    return Exit.DONE


def run(
    name: Name,
    *,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="TEXT",
            help="Until a day after its end, the same key makes no second one.",
        ),
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Enqueue a schedule's job now, beside its ticks, and print its id."""
    with opened(database_url, schema) as admin:
        known(admin, name)
        answer = admin.schedules.run(name, by(who, reason), key=key)
    if as_json:
        print_json(answer)
    else:
        print_lines([str(answer.id)])
    if answer.created:
        say(f"enqueued job {answer.id} of {name}")
    else:
        say(f"job {answer.id} has this key already; nothing was enqueued")
    return Exit.DONE
