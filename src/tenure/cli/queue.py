"""`tenure queue`: show, pause, limit and configure queues."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tenure import _actions
from tenure._actions import Outcome
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import (
    CommandContext,
    Quotas,
    duration_option,
    format_quotas,
    instant,
    operator_command,
    parse_duration,
    parse_quotas,
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
    cls=HelpGroup, name="queue", help="List, pause, limit and configure queues."
)
Name = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue, or * for all.")]
_COUNTS = ("due", "scheduled", "running", "held", "failed")


@operator_command(app, "list", example="tenure queue list")
def list_queues(ctx: CommandContext) -> int:
    """List queues with their job counts, pauses and limits.

    Counts are exact up to 10,000.

    JSON: `queues`, each with its `name`, `depth` and `set`.
    """
    depths, rows = _depths_and_rows(ctx.admin)
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


@operator_command(app, "show", example="tenure queue show mail")
def show(ctx: CommandContext, name: Name) -> int:
    """Show a queue with its counts, settings and audit log.

    JSON: `queue` and `audit`.
    """
    depths, rows = _depths_and_rows(ctx.admin)
    if name not in {*depths, *rows}:
        raise CommandError(
            f"queue {name} does not exist",
            "it has no jobs, no worker serves it, and it has no settings",
            "list the queues: tenure queue list",
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


@operator_command(
    app,
    _actions.PAUSE_QUEUE,
    example="tenure queue pause mail --reason 'provider is down'",
)
def pause(
    ctx: CommandContext,
    name: Name,
    *,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Resume at this time.")
    ] = None,
) -> int:
    """You can pause a queue before its first job. If the queue has no jobs and no worker serves it,
    the command prints a warning and suggests a similar name.

    JSON: `queue`, with its new settings.
    """
    row = ctx.admin.queues.pause(name, ctx.by, until=instant(until))
    outcome = _actions.PAUSE_QUEUE.outcome(name)
    return _done(ctx, row, outcome, f"to resume it: tenure queue resume {name}")


@operator_command(app, _actions.RESUME_QUEUE, example="tenure queue resume mail")
def resume(ctx: CommandContext, name: Name) -> int:
    """JSON: `queue`, with its new settings."""
    row = ctx.admin.queues.resume(name, ctx.by)
    return ctx.done({"queue": row}, _actions.RESUME_QUEUE.outcome(name), "")


@operator_command(app, _actions.LIMIT_QUEUE, example="tenure queue limit mail --running 5")
def limit(
    ctx: CommandContext,
    name: Name,
    *,
    most: Annotated[
        int | None,
        typer.Option(
            "--running",
            metavar="N",
            min=0,
            max=2**31 - 1,
            help="Run at most N jobs at once.",
            show_default="no limit",
        ),
    ] = None,
) -> int:
    """`*` limits all queues together. You can limit a queue before its first job. If the queue has
    no jobs and no worker serves it, the command prints a warning and suggests a similar name.

    JSON: `queue`, with its new settings.
    """
    row = ctx.admin.queues.limit(name, most, ctx.by)
    status = "unlimited" if most is None else "limited"
    return _done(ctx, row, _actions.LIMIT_QUEUE.outcome(name, status, limit=most), "")


@operator_command(app, _actions.CONFIGURE_QUEUE, example="tenure queue configure mail --lease 1m")
def configure(
    ctx: CommandContext,
    name: Name,
    *,
    lease: Annotated[
        str | None,
        duration_option("--lease", "Set the lease of its jobs.", show_default="the lease setting"),
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(
            "--max-attempts",
            metavar="N",
            min=1,
            help="Try its jobs at most N times.",
            show_default="the max_attempts setting",
        ),
    ] = None,
) -> int:
    """Values set by a task or a call override the queue's. If you omit an option, it's reset to the
    installation's setting. You can configure a queue before its first job. If the queue has no jobs
    and no worker serves it, the command prints a warning and suggests a similar name.

    JSON: `queue`, with its new settings.
    """
    row = ctx.admin.queues.configure(
        name, ctx.by, lease=parse_duration(lease), max_attempts=max_attempts
    )
    values = {"lease": lease or "by default", "max_attempts": max_attempts or "by default"}
    return _done(ctx, row, _actions.CONFIGURE_QUEUE.outcome(name, **values), "")


@operator_command(
    app, _actions.QUOTA_QUEUE, example="tenure queue quota mail --quota live_jobs=1000"
)
def quota(ctx: CommandContext, name: Name, *, quotas: Quotas = None) -> int:
    """The new quotas replace all former ones. Without --quota, the queue has none. Servers apply
    them within seconds, to jobs that are enqueued over HTTP.

    JSON: `queue`, with its new settings.
    """
    row = ctx.admin.queues.quota(name, parse_quotas(quotas), ctx.by)
    outcome = _actions.QUOTA_QUEUE.outcome(name, quotas=format_quotas(row.quotas) or "no quotas")
    return _done(ctx, row, outcome, "")


def _depths_and_rows(admin: "Admin") -> "tuple[dict[str, Depth], dict[str, QueueRow]]":
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
        "quotas": format_quotas(row.quotas) or None,
    }


def _warning(admin: "Admin", name: str) -> str | None:
    """Return a warning if the queue has no jobs and no worker: its name may be misspelled."""
    from difflib import get_close_matches

    from tenure.admin import live
    from tenure.types import EVERY_QUEUE

    depths = {depth.queue: depth for depth in admin.queues.depths()}
    used = {queue for queue, depth in depths.items() if any(_counts(depth))}
    served = {queue for worker in live(admin.workers.list()) for queue in worker.queues}
    if name == EVERY_QUEUE or name in used | served:
        return None
    near = get_close_matches(name, sorted(used | served - {EVERY_QUEUE}), n=1)
    suggestion = f"; did you mean {near[0]}?" if near else ""
    return f"queue {name} has no jobs and no worker serves it{suggestion}"


def _oldest(depth: "Depth | None") -> timedelta | None:
    """Return how long the oldest due job has waited, to the second."""
    if depth is None or depth.oldest_due_age is None:
        return None
    return timedelta(seconds=round(depth.oldest_due_age.total_seconds()))


def _counts(depth: "Depth") -> list[int]:
    return [getattr(depth, count).value for count in _COUNTS]


def _done(ctx: CommandContext, row: "QueueRow", outcome: Outcome, hint: str) -> Exit:
    """Print the outcome, and a warning if the queue's name may be misspelled."""
    done = ctx.done({"queue": row}, outcome, hint)
    if (warning := _warning(ctx.admin, row.name)) is not None:
        print_note(f"warning: {warning}")
    return done
