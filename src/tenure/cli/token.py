"""`tenure token`: who may come in over the server."""

from enum import StrEnum
from typing import Annotated

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
    parse_duration,
)
from tenure.cli.output import print_json, print_lines, print_note, print_table

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


@app.command("create")
def create(
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
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Make an access token, and print its secret: now and never again."""
    lasts = parse_duration(expires_in)
    with connect_admin(database_url, schema) as admin:
        made = admin.tokens.create(
            name, actor(who, reason), scopes=scopes, queues=queues or ["*"], expires_in=lasts
        )
    if as_json:
        print_json({"secret": made.secret, "token": made.token})
    else:
        print_lines([made.secret])
    print_note(f"token {made.token.id} is made; keep its secret, it is shown this once")
    return Exit.DONE


@app.command("list")
def list_tokens(
    *,
    active: Annotated[
        bool, typer.Option("--active", help="Without those that are expired or revoked.")
    ] = False,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")
    ] = 100,
    before: Annotated[
        int | None, typer.Option("--before", metavar="ID", min=1, help="Go on below this id.")
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Show access tokens, newest first, by how their secrets begin."""
    with connect_admin(database_url, schema) as admin:
        rows = admin.tokens.list(before=before, count=count, active=active)
    more = rows[-1].id if len(rows) == count else None
    if as_json:
        print_json({"tokens": rows, "next": more})
    elif rows:
        print_table(
            ("id", "name", "begins", "state", "scopes", "queues", "made", "by", "expires", "used"),
            [
                (
                    row.id,
                    row.name,
                    row.hint,
                    row.state,
                    ",".join(row.grant.scopes),
                    ",".join(row.grant.queues),
                    row.created_at,
                    row.created_by,
                    row.expires_at,
                    row.last_used_at,
                )
                for row in rows
            ],
        )
    print_note(
        f"{len(rows)} shown; more may follow: --before {more}"
        if more
        else f"{len(rows)} shown; no more"
    )
    return Exit.DONE


@app.command("revoke")
def revoke(
    ids: Annotated[
        list[int],
        typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="The tokens' ids."),
    ],
    *,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Let access tokens in no more, for good."""
    with connect_admin(database_url, schema) as admin:
        answers = admin.tokens.revoke(ids, actor(who, reason))
    done = [token_id for token_id, answer in zip(ids, answers, strict=True) if answer]
    if as_json:
        print_json({"revoked": done})
    if not done:
        raise CommandError(
            "no token was revoked",
            "there is none with this id, or it was revoked before",
            "see which there are: tenure token list",
            Exit.NOT_FOUND,
        )
    print_note(f"{len(done)} of {len(ids)} revoked")
    return Exit.DONE if len(done) == len(ids) else Exit.PARTIAL
