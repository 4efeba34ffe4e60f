"""Options that are the fields of a job, and decorators that give a command many options at once."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import wraps
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from tenure.cli.options import (
    AsJson,
    CommandContext,
    DatabaseUrl,
    Reason,
    SchemaName,
    Who,
    arguments,
    duration_option,
    instant,
    parse_duration,
)

Command: TypeAlias = Callable[..., int]


def duration(flag: str, text: str, *, parser: Callable[[str], Any] = parse_duration) -> Any:
    """An option that is a duration."""
    return Annotated[timedelta | None, duration_option(flag, text, parser=parser)]


def moment(flag: str, text: str) -> Any:
    """An option that is an instant."""
    option = typer.Option(flag, metavar="INSTANT", help=text, parser=instant)
    return Annotated[datetime | None, option]


ARGS: Any = Annotated[
    dict[str, Any] | None,
    typer.Option(
        "--args", metavar="JSON", help="The arguments by name; - reads stdin.", parser=arguments
    ),
]
JOB_FIELDS: Mapping[str, Any] = {
    "queue": Annotated[
        str | None, typer.Option("-q", "--queue", metavar="NAME", help="The queue to enqueue into.")
    ],
    "priority": Annotated[
        int | None, typer.Option("--priority", metavar="0-9", help="9 is the most urgent.")
    ],
    "max_attempts": Annotated[
        int | None, typer.Option("--max-attempts", metavar="N", help="How often a job is tried.")
    ],
    "timeout": duration("--timeout", "How long an attempt may run:"),
    "expires_in": duration("--expires-in", "How long a job is worth starting:"),
    "tags": Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TEXT", help="A tag to find jobs by; may be repeated."),
    ],
}
ENQUEUE_FIELDS: Mapping[str, Any] = {
    **JOB_FIELDS,
    "delay": duration("--delay", "Due only after this long:"),
    "run_at": moment("--run-at", "Due then: 2030-01-31T09:00+01:00."),
    "key": Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="One living job of the task per key."),
    ],
    "key_for": duration("--key-for", "Keep the key this long after its end:"),
    "lease": duration("--lease", "How long a claim grants it:"),
    "target": Annotated[
        int | None,
        typer.Option("--target", metavar="N", help="Complete once it has this many items."),
    ],
}


def takes_fields(options: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command these options; its parameter `fields` has those that were given, by name."""

    def decorate(command: Command) -> Command:
        def face(**given: Any) -> int:
            fields = {name: given.pop(name) for name in options}
            fields = {name: value for name, value in fields.items() if value not in (None, [])}
            return command(**given, fields=fields)

        return _with_options(command, face, options, without="fields")

    return decorate


def admin_command(*, changes: bool) -> Callable[[Command], Command]:
    """Give a command the options that say which database it is for, with `changes` also who does it
    and why; its parameter `context` has what they mean."""
    options: dict[str, Any] = {"reason": Reason, "who": Who} if changes else {}
    options |= {"as_json": AsJson, "database_url": DatabaseUrl, "schema": SchemaName}

    def decorate(command: Command) -> Command:
        def face(**given: Any) -> int:
            shared = {name: given.pop(name) for name in options}
            with ExitStack() as stack:
                return command(context=CommandContext(shared, stack, check=True), **given)

        return _with_options(command, face, options, without="context")

    return decorate


def _with_options(
    command: Command, face: Command, options: Mapping[str, Any], *, without: str
) -> Command:
    """Let `face` have the signature of `command`, which Typer reads, with options in the place of a
    parameter."""
    hints = get_type_hints(command, include_extras=True)
    own = [p for p in inspect.signature(command).parameters.values() if p.name != without]
    taken = [p.replace(annotation=hints[p.name]) for p in own]
    for name, annotation in options.items():
        default = False if annotation is AsJson else None
        taken.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    named = wraps(command)(face)
    named.__annotations__ = {p.name: p.annotation for p in taken}
    vars(named)["__signature__"] = inspect.Signature(taken)
    return named
