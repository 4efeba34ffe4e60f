"""`tenure queue`: what is in each queue, and what operators have set for it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Outcome
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    CommandContext,
    Commands,
    duration_option,
    instant,
    operator_command,
    parse_duration,
)
from tenure.cli.output import (
    print_audit,
    print_fields,
    print_json,
    print_note,
    print_table,
)

if TYPE_CHECKING:
    from tenure.admin import Admin
    from tenure.types import Depth, QueueRow

app: typer.Typer = typer.Typer(
    cls=Commands, name="queue", help="Queues: look at them, pause them, limit what runs at once."
)
Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="The queue's name; * speaks for all of them.")
]
_COUNTS = ("due", "scheduled", "running", "held", "failed")


@operator_command(app, "list")
def list_queues(ctx: CommandContext) -> int:
    """Show every known queue: how much there is in it, and whether it is paused or limited."""
    depths, rows = _found(ctx.admin)
    if ctx.as_json:
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


@operator_command(app, "show")
def show(ctx: CommandContext, name: Name) -> int:
    """Show one queue: how much there is in it, what is set for it, and who set it."""
    depths, rows = _found(ctx.admin)
    if name not in {*depths, *rows}:
        raise CommandError(
            f"there is no queue {name}",
            "no job is in it, no worker serves it, and nothing is set for it",
            "see which there are: tenure queue list",
            Exit.NOT_FOUND,
        )
    audit = ctx.admin.audit.list(f"queue:{name}", count=10)
    if ctx.as_json:
        print_json({"queue": _data(name, depths, rows), "audit": audit})
        return Exit.DONE
    depth = depths.get(name)
    fields: dict[str, object] = {"queue": name}
    fields |= {count: getattr(depth, count, None) for count in _COUNTS}
    fields["oldest due"] = _oldest(depth)
    print_fields(fields | _set(rows.get(name)))
    if audit:
        print_audit(audit)
    return Exit.DONE


@operator_command(app, _actions.PAUSE_QUEUE)
def pause(
    ctx: CommandContext,
    name: Name,
    *,
    until: Annotated[
        str | None, typer.Option("--until", metavar="INSTANT", help="Go on by itself then.")
    ] = None,
) -> int:
    row = ctx.admin.queues.pause(name, ctx.by, until=instant(until))
    outcome = _actions.PAUSE_QUEUE.outcome(name)
    return _done(ctx, row, outcome, f"to resume it: tenure queue resume {name}")


@operator_command(app, _actions.RESUME_QUEUE)
def resume(ctx: CommandContext, name: Name) -> int:
    row = ctx.admin.queues.resume(name, ctx.by)
    return ctx.done({"queue": row}, _actions.RESUME_QUEUE.outcome(name), "")


@operator_command(app, _actions.LIMIT_QUEUE)
def limit(
    ctx: CommandContext,
    name: Name,
    *,
    most: Annotated[
        int | None,
        typer.Option("--running", min=0, max=2**31 - 1, help="How many; left away, no limit."),
    ] = None,
) -> int:
    row = ctx.admin.queues.limit(name, most, ctx.by)
    status = "unlimited" if most is None else "limited"
    return _done(ctx, row, _actions.LIMIT_QUEUE.outcome(name, status, limit=most), "")


@operator_command(app, _actions.CONFIGURE_QUEUE)
def configure(
    ctx: CommandContext,
    name: Name,
    *,
    lease: Annotated[
        str | None, duration_option("--lease", "How long a claim grants its jobs:")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", min=1, help="How often its jobs are tried.")
    ] = None,
) -> int:
    row = ctx.admin.queues.configure(
        name, ctx.by, lease=parse_duration(lease), max_attempts=max_attempts
    )
    values = {"lease": lease or "by default", "max_attempts": max_attempts or "by default"}
    return _done(ctx, row, _actions.CONFIGURE_QUEUE.outcome(name, **values), "")


def _found(admin: "Admin") -> "tuple[dict[str, Depth], dict[str, QueueRow]]":
    depths = {depth.queue: depth for depth in admin.queues.depths()}
    return depths, {row.name: row for row in admin.queues.list()}


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

    depths = {depth.queue: depth for depth in admin.queues.depths()}
    used = {queue for queue, depth in depths.items() if any(_counts(depth))}
    served = {queue for worker in live(admin.workers.list()) for queue in worker.queues}
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


def _done(ctx: CommandContext, row: "QueueRow", outcome: Outcome, hint: str) -> Exit:
    """Print what was done, and warn where the queue may not be the one that was meant."""
    done = ctx.done({"queue": row}, outcome, hint)
    if (doubt := _doubt(ctx.admin, row.name)) is not None:
        print_note(f"warning: {doubt}")
    return done
