"""`tenure queue`: what is in each queue, and what operators have set for it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    AsJson,
    Commands,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    actor,
    connect_admin,
    duration_option,
    instant,
    parse_duration,
)
from tenure.cli.output import print_fields, print_json, print_note, print_table

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import Depth, QueueRow

app: typer.Typer = typer.Typer(
    cls=Commands, name="queue", help="Queues: look at them, pause them, limit what runs at once."
)
Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The queue's name; * speaks for all of them.")
]
_COUNTS = ("due", "later", "running", "held", "failed")


@app.command("list")
def list_queues(
    *, as_json: AsJson = False, database_url: DatabaseUrl = None, schema: SchemaName = None
) -> int:
    """Show every known queue: how much there is in it, and whether it is paused or limited."""
    with connect_admin(database_url, schema) as admin:
        depths, rows = _found(admin)
    if as_json:
        print_json({"queues": [_data(name, depths, rows) for name in _names(depths, rows)]})
    elif depths or rows:
        print_table(
            ("queue", *_COUNTS, "oldest due", "paused", "limit"),
            [
                (
                    name,
                    *(getattr(depths.get(name), count, None) for count in _COUNTS),
                    _oldest(depths.get(name)),
                    "paused" if name in rows and rows[name].paused_at else None,
                    rows[name].max_running if name in rows else None,
                )
                for name in _names(depths, rows)
            ],
        )
    print_note(f"{len(_names(depths, rows))} shown; counts are exact up to 10,000")
    return Exit.DONE


@app.command("show")
def show(
    name: Name,
    *,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show one queue: how much there is in it, what is set for it, and who set it."""
    with connect_admin(database_url, schema) as admin:
        depths, rows = _found(admin)
        if name not in {*depths, *rows}:
            raise CommandError(
                f"there is no queue {name}",
                "no job is in it, no worker serves it, and nothing is set for it",
                "see which there are: tenure queue list",
                Exit.NOT_FOUND,
            )
        audit = admin.audit(f"queue:{name}", count=10)
    if as_json:
        print_json({"queue": _data(name, depths, rows), "audit": audit})
        return Exit.DONE
    depth = depths.get(name)
    fields: dict[str, object] = {"queue": name}
    fields |= {count: getattr(depth, count, None) for count in _COUNTS}
    fields["oldest due"] = _oldest(depth)
    print_fields(fields | _set(rows.get(name)))
    if audit:
        print_table(
            ("at", "by", "from", "action", "reason"),
            [(row.at, row.actor, row.source, row.action, row.reason) for row in audit],
        )
    return Exit.DONE


@app.command("pause")
def pause(
    name: Name,
    *,
    until: Annotated[
        str | None, typer.Option("--until", metavar="INSTANT", help="Go on by itself then.")
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let nothing be claimed from a queue, until then or until resumed. What runs goes on."""
    then = instant(until)
    with connect_admin(database_url, schema) as admin:
        row = admin.pause_queue(name, actor(who, reason), until=then)
        doubt = _doubt(admin, name)
    words = f"{name} is paused; to go on: tenure queue resume {name}"
    return _told(row, words, doubt, as_json=as_json)


@app.command("resume")
def resume(
    name: Name,
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let a paused queue go on."""
    with connect_admin(database_url, schema) as admin:
        row = admin.resume_queue(name, actor(who, reason))
    return _told(row, f"{name} goes on", as_json=as_json)


@app.command("limit")
def limit(
    name: Name,
    *,
    most: Annotated[
        int | None,
        typer.Option("--running", min=0, max=2**31 - 1, help="How many; left away, no limit."),
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let at most so many jobs of a queue run at once, over all workers."""
    with connect_admin(database_url, schema) as admin:
        row = admin.limit_queue(name, most, actor(who, reason))
        doubt = _doubt(admin, name)
    words = "has no limit" if most is None else f"runs {most} at once at the most"
    return _told(row, f"{name} {words}", doubt, as_json=as_json)


@app.command("configure")
def configure(
    name: Name,
    *,
    lease: Annotated[
        str | None, duration_option("--lease", "How long a claim grants its jobs:")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", min=1, help="How often its jobs are tried.")
    ] = None,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Give a queue its own lease and attempts; what is left away is left to the settings."""
    grants = parse_duration(lease)
    with connect_admin(database_url, schema) as admin:
        who_and_why = actor(who, reason)
        row = admin.configure_queue(name, who_and_why, lease=grants, max_attempts=max_attempts)
        doubt = _doubt(admin, name)
    of_settings = "the setting"
    words = f"lease {lease or of_settings}, max attempts {max_attempts or of_settings}"
    return _told(row, f"{name} has: {words}", doubt, as_json=as_json)


def _found(admin: "Admin") -> "tuple[dict[str, Depth], dict[str, QueueRow]]":
    depths = {depth.queue: depth for depth in admin.depths()}
    return depths, {row.name: row for row in admin.queues()}


def _names(depths: "dict[str, Depth]", rows: "dict[str, QueueRow]") -> list[str]:
    return sorted({*depths, *rows})


def _data(name: str, depths: "dict[str, Depth]", rows: "dict[str, QueueRow]") -> dict[str, object]:
    return {"name": name, "depth": depths.get(name), "set": rows.get(name)}


def _set(row: "QueueRow | None") -> dict[str, object]:
    if row is None:
        return {}
    return {
        "paused": row.paused_at,
        "until": row.paused_until,
        "by": row.paused_by,
        "reason": row.paused_reason,
        "limit": row.max_running,
        "lease": row.lease,
        "max attempts": row.max_attempts,
    }


def _doubt(admin: "Admin", name: str) -> str | None:
    """That a queue may not be the one that is meant: nothing is in it and nobody serves it."""
    from difflib import get_close_matches

    from tenure.admin import live
    from tenure.types import EVERY_QUEUE

    depths = {depth.queue: depth for depth in admin.depths()}
    used = {queue for queue, depth in depths.items() if any(_counts(depth))}
    served = {queue for worker in live(admin.workers()) for queue in worker.queues}
    if name == EVERY_QUEUE or name in used | served:
        return None
    near = get_close_matches(name, sorted(used | served - {EVERY_QUEUE}), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"no job is in {name} and no worker serves it{meant}"


def _oldest(depth: "Depth | None") -> timedelta | None:
    """For how long its oldest due job waits, to the second."""
    if depth is None or depth.oldest_due_age is None:
        return None
    return timedelta(seconds=round(depth.oldest_due_age.total_seconds()))


def _counts(depth: "Depth") -> list[int]:
    return [getattr(depth, count).value for count in _COUNTS]


def _told(row: "QueueRow", words: str, doubt: str | None = None, *, as_json: bool) -> Exit:
    if as_json:
        print_json({"queue": row})
    print_note(words)
    if doubt is not None:
        print_note(f"warning: {doubt}")
    return Exit.DONE
