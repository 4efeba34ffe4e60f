"""`tenure job enqueue`: a job by its task's name, without the program that has the task."""

from typing import Annotated

import typer

from tenure.cli.data import print_json, print_lines
from tenure.cli.exits import Exit
from tenure.cli.options import (
    AsJson,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    arguments,
    by,
    instant,
    lasting,
    opened,
    seconds,
)
from tenure.cli.words import say


def enqueue(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    *,
    args: Annotated[
        str,
        typer.Option("--args", metavar="JSON", help="The arguments by name; - reads stdin."),
    ] = "{}",
    queue: Annotated[
        str, typer.Option("-q", "--queue", metavar="NAME", help="The queue it goes into.")
    ] = "default",
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="0-9", help="9 is the most urgent.")
    ] = None,
    delay: Annotated[str | None, lasting("--delay", "Due only after this long:")] = None,
    run_at: Annotated[
        str | None,
        typer.Option("--run-at", metavar="INSTANT", help="Due then: 2030-01-31T09:00+01:00."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="One living job of the task per key."),
    ] = None,
    key_for: Annotated[
        str | None, lasting("--key-for", "Keep the key this long after its end:")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", metavar="N", help="How often it is tried.")
    ] = None,
    lease: Annotated[str | None, lasting("--lease", "How long a claim grants it:")] = None,
    timeout: Annotated[str | None, lasting("--timeout", "How long an attempt may run:")] = None,
    expires_in: Annotated[
        str | None, lasting("--expires-in", "How long it is worth starting:")
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TEXT", help="A word to find it by; may be repeated."),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option("--target", metavar="N", help="Complete once it has this many items."),
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Held, until it is resumed.")] = False,
    reason: Reason = None,
    who: Who = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    schema: SchemaName = None,
) -> int:
    """Put one job into its queue, and print its id.

    The task's own options (queue, attempts, lease) are in the program that has it, and are not
    known here: say what differs from the defaults.
    """
    named = arguments(args)
    with opened(database_url, schema) as admin:
        answer = admin.enqueue(
            task,
            named,
            by(who, reason),
            queue=queue,
            priority=priority,
            delay=seconds(delay),
            run_at=instant(run_at),
            key=key,
            key_for=seconds(key_for),
            max_attempts=max_attempts,
            lease=seconds(lease),
            timeout=seconds(timeout),
            expires_in=seconds(expires_in),
            tags=tags or (),
            target=target,
            held=hold,
        )
    if as_json:
        print_json(answer)
    else:
        print_lines([str(answer.id)])
    if answer.created:
        say(f"enqueued job {answer.id} in queue {queue}")
    else:
        say(f"job {answer.id} has this key already; nothing was enqueued")
    return Exit.DONE
