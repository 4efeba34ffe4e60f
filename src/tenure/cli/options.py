"""Options shared by commands."""

import getpass
import json
import os
import re
import sys
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from inspect import Parameter, Signature, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenure._actions import Action, Outcome
from tenure.cli.errors import CommandError, Exit, failure
from tenure.cli.help import HelpCommand
from tenure.cli.output import print_json, print_note
from tenure.errors import ConfigError, TenureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenure.admin import Admin, By


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_DURATION = re.compile(r"\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?[smhd])+")
_NEWEST_ID = 2**63 - 1


class LevelName(StrEnum):
    """Log levels."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class ColourName(StrEnum):
    """Environment badge colors."""

    RED = "red"
    AMBER = "amber"
    GREEN = "green"
    BLUE = "blue"
    GREY = "grey"


class FormatName(StrEnum):
    """Log formats."""

    TEXT = "text"
    JSON = "json"


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="Connect to this PostgreSQL database.",
        show_default="TENURE_DATABASE_URL or tenure.toml",
    ),
]
SchemaName = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="NAME", help="Use the tables in this schema.", show_default="tenure"
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP",
        help="App to run, such as jobs:app.",
        show_default="app in tenure.toml",
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "-q",
        "--queues",
        metavar="NAME,…",
        help="Serve these queues; repeat or separate by commas.",
        show_default="the queues your tasks use, plus the queue default",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kinds",
        metavar="NAME,…",
        help="Also run these kinds of work: http, shell, grpc.",
        show_default="none",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "-c",
        "--concurrency",
        metavar="N",
        min=1,
        help="Run up to N jobs at once per process.",
        show_default="10",
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        help="Run jobs in N child processes.",
        show_default="1",
    ),
]


def grace_option(text: str) -> Any:
    """Return the option for how long running jobs have to finish."""
    return typer.Option("--grace", metavar="SECONDS", min=0, help=text, show_default="25")


LoadTimeout = Annotated[
    float | None,
    typer.Option(
        "--load-timeout",
        metavar="SECONDS",
        min=1,
        help="Restart a child that needs longer to load the app.",
        show_default="60",
    ),
]
MaxJobs = Annotated[
    int | None,
    typer.Option(
        "--max-jobs",
        metavar="N",
        min=1,
        help="Replace a child after N jobs.",
        show_default="never",
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Replace a child at this memory use, such as 512MiB.",
        show_default="never",
    ),
]
MetricsHost = Annotated[
    str | None,
    typer.Option(
        "--metrics-host",
        metavar="ADDRESS",
        help="Serve /metrics and /healthz on this address.",
        show_default="127.0.0.1",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        help="Serve /metrics and /healthz on this port.",
        show_default="off",
    ),
]
LogLevel = Annotated[
    LevelName | None,
    typer.Option(
        "--log-level",
        metavar="|".join(LevelName),
        help="Log this level and above.",
        show_default="info",
    ),
]
LogFormat = Annotated[
    FormatName | None,
    typer.Option(
        "--log-format",
        metavar="|".join(FormatName),
        help="Log lines of text, or JSON objects.",
        show_default="text",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ActorName = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="NAME",
        help="Record this name in the audit log.",
        show_default="the OS user",
    ),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Record this reason in the audit log."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the effect without changing anything.")
]
Count = Annotated[
    int,
    typer.Option("-n", "--count", metavar="N", min=1, max=1000, help="Show at most N, up to 1000."),
]
After = Annotated[
    str | None,
    typer.Option(
        "--after", metavar="PLACE", help="Continue at the place that the last list printed."
    ),
]
Before = Annotated[
    int | None, typer.Option("--before", metavar="ID", min=1, help="Show only ids below this one.")
]
Quotas = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        metavar="NAME=N",
        help="Set a quota, such as live_jobs=1000; repeatable.",
        show_default="none",
    ),
]
JobNumber = Annotated[int, typer.Argument(metavar="ID", min=1, max=_NEWEST_ID, help="Job id.")]
JobNumbers = Annotated[
    list[int], typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="Job ids.")
]

AnyJobNumbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="Job ids, or use --filter."),
]


def duration_option(flag: str, text: str, **options: Any) -> Any:
    """Return an option that takes a duration. `parse_duration` reads it."""
    return typer.Option(flag, metavar="DURATION", help=text, **options)


class CommandContext:
    """The shared options' values, and `tenure.admin`, connected on first use."""

    def __init__(self, shared: "Mapping[str, Any]", stack: ExitStack, *, check: bool) -> None:
        self.database_url: str | None = shared.get("database_url")
        self.schema: str | None = shared.get("schema")
        self.as_json: bool = shared.get("as_json", False)
        self.dry_run: bool = shared.get("dry_run", False)
        self._actor_name: str | None = shared.get("actor_name")
        self._reason: str | None = shared.get("reason")
        self._stack = stack
        self._check = check

    @cached_property
    def admin(self) -> "Admin":
        """Connect on first use. The connection is closed when the command ends."""
        return self._stack.enter_context(
            connect_admin(self.database_url, self.schema, check=self._check)
        )

    @property
    def by(self) -> "By":
        """Return who is running the command and why, for the audit log."""
        return actor(self._actor_name, self._reason)

    def done(self, document: object, outcome: Outcome, hint: str) -> Exit:
        """Print the outcome: a document for programs, a sentence with a hint for people."""
        if self.as_json:
            print_json(document)
        print_note(f"{outcome.sentence}; {hint}" if hint else outcome.sentence)
        return Exit.DONE


def plain_command(
    app: typer.Typer, name: str, *, example: str, hidden: bool = False
) -> "Callable[[Callable[..., int]], Callable[..., int]]":
    """Add a command that has only its own options. Its docstring is the help."""
    return app.command(name, cls=HelpCommand, epilog=f"Example: {example}", hidden=hidden)


def operator_command(
    app: typer.Typer,
    command: "Action | str",
    *,
    example: str,
    details: str | None = None,
    fields: "Mapping[str, Any] | None" = None,
    changes: bool = False,
    dry_run: bool = False,
    check: bool = True,
) -> "Callable[[Callable[..., int]], Callable[..., int]]":
    """Add a command to a group, with the shared options.

    An action supplies the command's name and the first sentence of its help, and adds --by and
    --reason. For other commands, `changes` adds these options. `details` replaces the docstring in
    the help. The function's first parameter is the `CommandContext`. Its `fields` parameter
    receives the options from `fields` that were used, by name.
    """
    shared: dict[str, Any] = {}
    name, summary = (command, "") if isinstance(command, str) else (command.name, command.summary)
    changes = changes or isinstance(command, Action)
    if changes:
        shared |= {"reason": Reason, "actor_name": ActorName}
    if dry_run:
        shared["dry_run"] = DryRun
    shared |= {"as_json": AsJson, "database_url": DatabaseUrl, "schema": SchemaName}
    added = {**(fields or {}), **shared}

    def decorate(function: "Callable[..., int]") -> "Callable[..., int]":
        def run(**values: Any) -> int:
            common = {name: values.pop(name) for name in shared}
            if fields is not None:
                given = {name: values.pop(name) for name in fields}
                values["fields"] = {k: v for k, v in given.items() if v not in (None, [])}
            with ExitStack() as stack:
                return function(CommandContext(common, stack, check=check), **values)

        own = [p for p in signature(function).parameters.values() if p.name != "fields"][1:]
        options = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=False if name in {"dry_run", "as_json"} else None,
                annotation=kind,
            )
            for name, kind in added.items()
        ]
        run.__signature__ = Signature([*own, *options])  # type: ignore[attr-defined] # Typer reads it.
        text = getdoc(function) if details is None else details
        app.command(
            name,
            cls=HelpCommand,
            help="\n\n".join(part for part in (summary, text) if part),
            epilog=f"Example: {example}",
        )(run)
        return function

    return decorate


@contextmanager
def connect_admin(url: str | None, schema: str | None, *, check: bool = True) -> "Iterator[Admin]":
    """Connect `tenure.admin` to the database given on the command line."""
    from tenure import _settings, admin

    try:
        with admin.connect(url, schema=schema, check=check) as commands:
            yield commands
    except TenureError as error:
        with suppress(ConfigError):
            url = _settings.database_url(url)  # Its password isn't printed.
        raise failure(error, url=url) from error


def kind_names(values: list[str] | None) -> list[str] | None:
    """Return the kinds of work of `--kinds`. The option can be repeated or list several."""
    names = [name.strip() for value in values or () for name in value.split(",") if name.strip()]
    return names or None


def queue_names(values: list[str] | None) -> list[str] | None:
    """Return the `-q` queues without duplicates. The option can be repeated or list several."""
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if not names:
        raise CommandError(
            "there is no queue to serve",
            f"-q must name at least one queue, got {','.join(values)!r}",
            "name queues, as in -q mail,default, or omit -q to serve the queues of the tasks",
            Exit.USAGE,
        )
    return list(dict.fromkeys(names))


def actor(name: str | None, reason: str | None) -> "By":
    """Return who is acting and why, for the audit log."""
    from tenure.admin import By

    return By(name or _user(), source="cli", reason=reason)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container, the user may have a number but no name.
        return f"uid {os.getuid()}"


def parse_quotas(given: list[str] | None) -> dict[str, float]:
    """Read quotas, each a name and a number."""
    quotas: dict[str, float] = {}
    for text in given or ():
        name, _, number = text.partition("=")
        try:
            value = float(number)
        except ValueError:
            raise CommandError(
                "the quota is not valid",
                f"a quota must be a name and a number, got {text!r}",
                "write it like this: --quota live_jobs=1000",
                Exit.USAGE,
            ) from None
        quotas[name] = int(value) if value.is_integer() else value
    return quotas


def format_quotas(quotas: "Mapping[str, float]") -> str:
    """Return quotas as they are given on the command line."""
    return " ".join(f"{name}={value:.15g}" for name, value in quotas.items())


def parse_duration(text: str | None) -> timedelta | None:
    """Read a duration: a number of seconds, or numbers with s, m, h or d."""
    if text is None:
        return None
    try:
        if _DURATION.fullmatch(text):
            parts = _PART.findall(text)
            return timedelta(seconds=sum(float(n) * _UNITS[unit] for n, unit in parts))
    except OverflowError:
        pass
    raise CommandError(
        "the duration is not valid",
        f"a duration must be a number of seconds or have units, got {text!r}",
        "write it as 90, 90s, 5m, 1h30m or 1d",
        Exit.USAGE,
    )


def arguments(text: str) -> dict[str, Any]:
    """Read arguments written as a JSON object. `-` reads them from stdin."""
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise _not_an_object(str(error)) from error
    if not isinstance(value, dict):
        raise _not_an_object(f"--args must be a JSON object, got {text}")
    return value


def _not_an_object(why: str) -> CommandError:
    todo = """write a JSON object, as in --args '{"name": "Ada"}'"""
    return CommandError("the arguments are not a JSON object", why, todo, Exit.USAGE)


def instant(text: str | None) -> datetime | None:
    """Read a time written in ISO 8601."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(
            "the time is not valid",
            f"a time must be in ISO 8601, got {text!r}",
            "write it with its time zone, as in 2030-01-31T09:00+01:00",
            Exit.USAGE,
        ) from error
