"""`tenure session`: list and revoke dashboard sessions, and create sign-in links."""

from typing import Annotated

import typer

from tenure import _actions, _settings
from tenure.cli.errors import CommandError, Exit
from tenure.cli.help import HelpGroup
from tenure.cli.options import Before, CommandContext, Count, operator_command
from tenure.cli.output import print_json, print_lines, print_note, print_page_end, print_rows

app: typer.Typer = typer.Typer(
    cls=HelpGroup, name="session", help="List and revoke dashboard sessions, and sign in."
)
_NEWEST_ID = 2**63 - 1


@operator_command(app, "list", example="tenure session list --active")
def list_sessions(
    ctx: CommandContext,
    *,
    active: Annotated[bool, typer.Option("--active", help="Omit sessions that are over.")] = False,
    count: Count = 100,
    before: Before = None,
) -> int:
    """List dashboard sessions, newest first.

    JSON: `sessions` and `next`.
    """
    rows = ctx.admin.sessions.list(before=before, count=count, active=active)
    more = rows[-1].id if len(rows) == count else None
    if ctx.as_json:
        print_json({"sessions": rows, "next": more})
    elif rows:
        print_rows(
            rows,
            *("id", "name", "state", "provider", ("token", "token_id"), "address"),
            *(("created", "created_at"), ("last seen", "seen_at"), ("ends", "ends_at")),
        )
    print_page_end(len(rows), "--before", more)
    return Exit.DONE


@operator_command(app, _actions.REVOKE_SESSION, example="tenure session revoke 3")
def revoke(
    ctx: CommandContext,
    ids: Annotated[
        list[int],
        typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="Session ids."),
    ],
) -> int:
    """Exits with 3 if no session could be revoked, and with 7 if only some could.

    JSON: `revoked`, the ids.
    """
    answers = ctx.admin.sessions.revoke(ids, ctx.by)
    outcomes = [
        (session_id, _actions.REVOKE_SESSION.outcome(session_id, answer))
        for session_id, answer in zip(ids, answers, strict=True)
    ]
    done = [session_id for session_id, outcome in outcomes if not outcome.is_refusal]
    if ctx.as_json:
        print_json({"revoked": done})
    if not done:
        raise CommandError(
            "no session was revoked",
            outcomes[0][1].sentence,
            "list the sessions: tenure session list --active",
            Exit.NOT_FOUND,
        )
    print_note(f"{len(done)} of {len(ids)} revoked")
    return Exit.DONE if len(done) == len(ids) else Exit.PARTIAL


@operator_command(app, "link", example="tenure session link ana", changes=True)
def link(
    ctx: CommandContext,
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="Id or name of an active access token.")
    ],
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Address of the dashboard.",
            show_default="public_url, or host and port",
        ),
    ] = None,
) -> int:
    """Print a link that signs a browser in once.

    The link is valid for 60 s. The session has the rights of the access token. Of several tokens
    with this name, the newest is used.

    JSON: `url` and `expires_at`.
    """
    active = ctx.admin.tokens.list(count=1000, active=True)
    found = next((row for row in active if token in (str(row.id), row.name)), None)
    if found is None:
        raise CommandError(
            "no link was created",
            f"there is no active access token {token}",
            "list the tokens: tenure token list --active",
            Exit.NOT_FOUND,
        )
    code = ctx.admin.sessions.create_code(found.id, ctx.by)
    host, port = _settings.resolve("host"), _settings.resolve("port")
    base = url or _settings.resolve("public_url") or f"http://{host}:{port}"
    text = f"{base.rstrip('/')}/sign-in#{code.secret}"
    if ctx.as_json:
        print_json({"url": text, "expires_at": code.expires_at})
    else:
        print_lines([text])
    print_note("open it within 60 s; it works once")
    return Exit.DONE
