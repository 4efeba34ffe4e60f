"""`tenure token`: create, list and revoke access tokens."""

from typing import Annotated

import typer

from tenure import _actions
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import (
    Before,
    CommandContext,
    Count,
    Quotas,
    duration_option,
    format_quotas,
    operator_command,
    parse_duration,
    parse_quotas,
)
from tenure.cli.output import (
    print_json,
    print_lines,
    print_note,
    print_page_end,
    print_rows,
)
from tenure.types import Role, Scope

app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="token", help="Create, list and revoke access tokens."
)
_NEWEST_ID = 2**63 - 1
_NEVER = "never"
_LIFETIME = "90d"


@operator_command(
    app, _actions.CREATE_TOKEN, example="tenure token create ci --scope enqueue --queue mail"
)
def create(
    ctx: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token in lists.")],
    *,
    scopes: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope", metavar="|".join(Scope), help="Allow this; repeat for several scopes."
        ),
    ] = None,
    role: Annotated[
        Role | None,
        typer.Option("--role", metavar="|".join(Role), help="Allow what this role allows."),
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "-q",
            "--queue",
            metavar="PATTERN",
            help="Allow only these queues, such as mail.*; repeatable.",
            show_default="all queues",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="PATTERN",
            help="Let it enqueue only these tasks, such as mail.*; repeatable.",
            show_default="all tasks",
        ),
    ] = None,
    quotas: Quotas = None,
    expires_in: Annotated[
        str | None,
        duration_option(
            "--expires-in", "Let the token expire, such as in 30d, or never.", show_default="90d"
        ),
    ] = None,
) -> int:
    """Tenure doesn't store the secret, so save it now.

    JSON: `secret` and `token`.
    """
    if not scopes and role is None:
        raise CommandError(
            "the command line is wrong",
            "a token must have --scope or --role, got neither",
            "add one, such as --role viewer",
            Exit.USAGE,
        )
    lifetime = None if expires_in == _NEVER else parse_duration(expires_in or _LIFETIME)
    made = ctx.admin.tokens.create(
        name,
        ctx.by,
        scopes=scopes or [],
        role=role,
        queues=queues or ["*"],
        expires_in=lifetime,
        tasks=tasks or ["*"],
        quotas=parse_quotas(quotas),
    )
    if ctx.as_json:
        print_json({"secret": made.secret, "token": made.token})
    else:
        print_lines([made.secret])
    outcome = _actions.CREATE_TOKEN.outcome(made.token.id)
    print_note(f"{outcome.sentence}; save its secret, it is shown only once")
    if made.token.expires_at is None:
        print_note("it never expires; revoke it when it is no longer used")
    return Exit.DONE


@operator_command(app, "list", example="tenure token list --active")
def list_tokens(
    ctx: CommandContext,
    *,
    active: Annotated[
        bool, typer.Option("--active", help="Omit expired and revoked tokens.")
    ] = False,
    count: Count = 100,
    before: Before = None,
) -> int:
    """List access tokens, newest first.

    Shows only the start of each secret.

    JSON: `tokens` and `next`.
    """
    rows = ctx.admin.tokens.list(before=before, count=count, active=active)
    more = rows[-1].id if len(rows) == count else None
    if ctx.as_json:
        print_json({"tokens": rows, "next": more})
    elif rows:
        print_rows(
            rows,
            *("id", "name", ("secret", "hint"), "state"),
            ("scopes", lambda row: ",".join(row.grant.scopes)),
            ("queues", lambda row: ",".join(row.grant.queues)),
            ("tasks", lambda row: ",".join(row.grant.tasks)),
            ("quotas", lambda row: format_quotas(row.quotas)),
            *(("created", "created_at"), ("by", "created_by")),
            *(("expires", "expires_at"), ("last used", "last_used_at")),
        )
    print_page_end(len(rows), "--before", more)
    return Exit.DONE


@operator_command(app, _actions.QUOTA_TOKEN, example="tenure token quota 3 --quota live_jobs=1000")
def quota(
    ctx: CommandContext,
    token_id: Annotated[int, typer.Argument(metavar="ID", min=1, max=_NEWEST_ID, help="Token id.")],
    *,
    quotas: Quotas = None,
) -> int:
    """The new quotas replace all former ones. Without --quota, the token has only default quotas.
    Servers apply them within seconds.

    JSON: `quotas`.
    """
    wanted = parse_quotas(quotas)
    outcome = _actions.QUOTA_TOKEN.outcome(
        token_id, ctx.admin.tokens.quota(token_id, wanted, ctx.by)
    )
    if outcome.is_refusal:
        raise CommandError(
            "no quota was changed",
            outcome.sentence,
            "list the tokens: tenure token list",
            Exit.NOT_FOUND,
        )
    return ctx.done({"quotas": wanted}, outcome, "")


@operator_command(app, _actions.REVOKE_TOKEN, example="tenure token revoke 3")
def revoke(
    ctx: CommandContext,
    ids: Annotated[
        list[int],
        typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="Token ids."),
    ],
    *,
    keep_children: Annotated[
        bool, typer.Option("--keep-children", help="Keep the tokens that they created.")
    ] = False,
) -> int:
    """Revokes the tokens that they created too, and ends their dashboard sessions.

    Exits with 3 if no token could be revoked, and with 7 if only some could.

    JSON: `revoked`, the ids.
    """
    answers = ctx.admin.tokens.revoke(ids, ctx.by, children=not keep_children)
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
            "list the tokens: tenure token list",
            Exit.NOT_FOUND,
        )
    print_note(f"{len(done)} of {len(ids)} revoked")
    return Exit.DONE if len(done) == len(ids) else Exit.PARTIAL
