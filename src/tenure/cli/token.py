"""`tenure token`: who may come in over the server."""

from enum import StrEnum
from typing import Annotated

import typer

from tenure import _actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.options import (
    Before,
    CommandContext,
    Commands,
    Count,
    duration_option,
    operator_command,
    parse_duration,
)
from tenure.cli.output import (
    print_json,
    print_lines,
    print_note,
    print_page_end,
    print_rows,
)

app: typer.Typer = typer.Typer(
    cls=Commands, name="token", help="Access tokens: make them, look at them, revoke them."
)
_NEWEST_ID = 2**63 - 1


class ScopeName(StrEnum):
    """The scopes by name, without loading what knows them; a test holds them to be the same."""

    ENQUEUE = "enqueue"
    WORK = "work"
    READ = "read"
    PAYLOAD_READ = "payload:read"
    OPERATE = "operate"
    ADMIN = "admin"


@operator_command(app, _actions.CREATE_TOKEN)
def create(
    ctx: CommandContext,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is for, to know it in lists.")
    ],
    *,
    scopes: Annotated[
        list[ScopeName], typer.Option("--scope", help="What it allows; may be repeated.")
    ],
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "-q",
            "--queue",
            metavar="PATTERN",
            help="Where: a queue, mail.* for all that begin so; else every one. May be repeated.",
        ),
    ] = None,
    expires_in: Annotated[
        str | None, duration_option("--expires-in", "How long it lets in:")
    ] = None,
) -> int:
    lasts = parse_duration(expires_in)
    made = ctx.admin.tokens.create(
        name, ctx.by, scopes=scopes, queues=queues or ["*"], expires_in=lasts
    )
    if ctx.as_json:
        print_json({"secret": made.secret, "token": made.token})
    else:
        print_lines([made.secret])
    outcome = _actions.CREATE_TOKEN.outcome(made.token.id)
    print_note(f"{outcome.sentence}; keep its secret, it is shown this once")
    return Exit.DONE


@operator_command(app, "list")
def list_tokens(
    ctx: CommandContext,
    *,
    active: Annotated[
        bool, typer.Option("--active", help="Without those that are expired or revoked.")
    ] = False,
    count: Count = 100,
    before: Before = None,
) -> int:
    """Show access tokens, newest first, by how their secrets begin."""
    rows = ctx.admin.tokens.list(before=before, count=count, active=active)
    more = rows[-1].id if len(rows) == count else None
    if ctx.as_json:
        print_json({"tokens": rows, "next": more})
    elif rows:
        print_rows(
            rows,
            *("id", "name", ("begins", "hint"), "state"),
            ("scopes", lambda row: ",".join(row.grant.scopes)),
            ("queues", lambda row: ",".join(row.grant.queues)),
            *(("made", "created_at"), ("by", "created_by")),
            *(("expires", "expires_at"), ("used", "last_used_at")),
        )
    print_page_end(len(rows), "--before", more)
    return Exit.DONE


@operator_command(app, _actions.REVOKE_TOKEN)
def revoke(
    ctx: CommandContext,
    ids: Annotated[
        list[int],
        typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="The tokens' ids."),
    ],
) -> int:
    answers = ctx.admin.tokens.revoke(ids, ctx.by)
    outcomes = [
        (token_id, _actions.REVOKE_TOKEN.outcome(token_id, answer))
        for token_id, answer in zip(ids, answers, strict=True)
    ]
    done = [token_id for token_id, outcome in outcomes if not outcome.is_refusal]
    if ctx.as_json:
        print_json({"revoked": done})
    if not done:
        raise CommandError(
            "no token was revoked",
            outcomes[0][1].sentence,
            "see which there are: tenure token list",
            Exit.NOT_FOUND,
        )
    print_note(f"{len(done)} of {len(ids)} revoked")
    return Exit.DONE if len(done) == len(ids) else Exit.PARTIAL
