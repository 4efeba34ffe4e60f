"""Options that commands share."""

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
from typer.core import TyperGroup

from tenure._actions import Action, Outcome
from tenure.cli.errors import CommandError, Exit, failure
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
    """The levels by name."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class ColourName(StrEnum):
    """The colours of a badge by name."""

    RED = "red"
    AMBER = "amber"
    GREEN = "green"
    BLUE = "blue"
    GREY = "grey"


class FormatName(StrEnum):
    """The forms of the log by name."""

    TEXT = "text"
    JSON = "json"


DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="The database; else what TENURE_DATABASE_URL or tenure.toml says.",
    ),
]
SchemaName = Annotated[
    str | None,
    typer.Option("--schema", metavar="NAME", help="The schema that Tenure's tables are in."),
]
Target = Annotated[
    str | None,
    typer.Argument(
        metavar="MODULE:APP", help="Where the app is: its module and name; else as configured."
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "-q",
        "--queues",
        metavar="NAME,…",
        help="The queues to serve; else those that the tasks name. May be repeated.",
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option("-c", "--concurrency", min=1, help="Jobs at once in each process; else 10."),
]
Processes = Annotated[
    int | None,
    typer.Option("--processes", min=1, help="Child processes that run handlers; else 1."),
]
Grace = Annotated[
    float | None,
    typer.Option(
        "--grace",
        metavar="SECONDS",
        min=0,
        help="How long running jobs have to end after a SIGTERM; else 25.",
    ),
]
LoadTimeout = Annotated[
    float | None,
    typer.Option(
        "--load-timeout",
        metavar="SECONDS",
        min=1,
        help="How long a child may take to load the app (default: 60).",
    ),
]
MaxJobs = Annotated[
    int | None,
    typer.Option(
        "--max-jobs", metavar="N", min=1, help="Replace a child after N jobs (default: never)."
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Replace a child that takes this much memory, as 512MiB (default: never).",
    ),
]
MetricsHost = Annotated[
    str | None,
    typer.Option(
        "--metrics-host",
        metavar="ADDRESS",
        help="The address of /metrics and /healthz; else loopback alone.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        help="Answer /metrics and /healthz on this port; else nobody does.",
    ),
]
LogLevel = Annotated[
    LevelName | None,
    typer.Option("--log-level", help="From which level on to log; else info."),
]
LogFormat = Annotated[
    FormatName | None,
    typer.Option("--log-format", help="Lines of text, or one JSON object per line; else text."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
Who = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who does it, for the audit; else the OS user."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the audit.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]
Count = Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many at the most.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="PLACE", help="Go on where the last list ended.")
]
Before = Annotated[
    int | None, typer.Option("--before", metavar="ID", min=1, help="Go on below this id.")
]
JobNumber = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=_NEWEST_ID, help="The job's id.")
]
JobNumbers = Annotated[
    list[int], typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="The jobs' ids.")
]

AnyJobNumbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="ID…", min=1, max=_NEWEST_ID, help="The jobs' ids; or a --filter."),
]


def duration_option(flag: str, text: str, **options: Any) -> Any:
    """An option that is a duration; `parse_duration` reads it."""
    help_text = f"{text} 90, 90s, 5m, 1h30m or 1d."
    return typer.Option(flag, metavar="SECONDS", help=help_text, **options)


class CommandContext:
    """What a command is given: the options that commands share, and the operator's commands over
    the database that they name, connected on first use."""

    def __init__(self, shared: "Mapping[str, Any]", stack: ExitStack, *, check: bool) -> None:
        self.database_url: str | None = shared.get("database_url")
        self.schema: str | None = shared.get("schema")
        self.as_json: bool = shared.get("as_json", False)
        self.dry_run: bool = shared.get("dry_run", False)
        self._who: str | None = shared.get("who")
        self._reason: str | None = shared.get("reason")
        self._stack = stack
        self._check = check

    @cached_property
    def admin(self) -> "Admin":
        """The operator's commands; the command's end closes the connection."""
        return self._stack.enter_context(
            connect_admin(self.database_url, self.schema, check=self._check)
        )

    @property
    def by(self) -> "By":
        """Who runs the command and why, for the audit."""
        return actor(self._who, self._reason)

    def done(self, document: object, outcome: Outcome, hint: str) -> Exit:
        """Print what was done: a document for programs, a sentence with a hint for people."""
        if self.as_json:
            print_json(document)
        print_note(f"{outcome.sentence}; {hint}" if hint else outcome.sentence)
        return Exit.DONE


def operator_command(
    app: typer.Typer, what: "Action | str", *, dry_run: bool = False, check: bool = True
) -> "Callable[[Callable[..., int]], Callable[..., int]]":
    """Add a command to a group, with the options that commands share.

    An action gives its name and help, and takes --by and --reason. The function's first parameter
    is the `CommandContext`.
    """
    options: dict[str, Any] = {}
    if isinstance(what, Action):
        options |= {"reason": Reason, "who": Who}
    if dry_run:
        options["dry_run"] = DryRun
    options |= {"as_json": AsJson, "database_url": DatabaseUrl, "schema": SchemaName}

    def decorate(function: "Callable[..., int]") -> "Callable[..., int]":
        def run(**values: Any) -> int:
            shared = {name: values.pop(name) for name in options}
            with ExitStack() as stack:
                return function(CommandContext(shared, stack, check=check), **values)

        own = list(signature(function).parameters.values())[1:]
        flags = (False if name in {"dry_run", "as_json"} else None for name in options)
        shared_parameters = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for (name, kind), default in zip(options.items(), flags, strict=True)
        ]
        run.__signature__ = Signature([*own, *shared_parameters])  # type: ignore[attr-defined] # Typer reads it.
        name, summary = (what.name, what.summary) if isinstance(what, Action) else (what, None)
        app.command(name, help=summary or getdoc(function))(run)
        return function

    return decorate


@contextmanager
def connect_admin(url: str | None, schema: str | None, *, check: bool = True) -> "Iterator[Admin]":
    """The operator's verbs over the database that the command line names."""
    from tenure import _settings, admin

    try:
        with admin.connect(url, schema=schema, check=check) as commands:
            yield commands
    except TenureError as error:
        with suppress(ConfigError):
            url = _settings.database_url(url)  # Its password is not printed.
        raise failure(error, url=url) from error


def names(said: list[str] | None) -> list[str] | None:
    """The queues' names, however they were said; each once."""
    if not said:
        return None
    found = [name.strip() for part in said for name in part.split(",") if name.strip()]
    if not found:
        raise CommandError(
            "no queue to serve",
            f"-q {','.join(said)!r} names none",
            "name one, as in -q mail,default; or leave -q away to serve those of the tasks",
            Exit.USAGE,
        )
    return list(dict.fromkeys(found))


def actor(who: str | None, reason: str | None) -> "By":
    """Who does it and why, as the audit keeps it."""
    from tenure.admin import By

    return By(who or _user(), source="cli", reason=reason)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container there may be a number without a name.
        return f"uid {os.getuid()}"


def parse_duration(text: str | None) -> timedelta | None:
    """A duration: seconds, or numbers with s, m, h or d."""
    if text is None:
        return None
    try:
        if _DURATION.fullmatch(text):
            parts = _PART.findall(text)
            return timedelta(seconds=sum(float(n) * _UNITS[unit] for n, unit in parts))
    except OverflowError:
        pass
    raise CommandError(
        "a duration is not understood",
        f"{text!r} is no number of seconds",
        "write 90, 90s, 5m, 1h30m or 1d",
        Exit.USAGE,
    )


def arguments(text: str) -> Any:
    """Arguments that were written as JSON; - reads them from stdin."""
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise CommandError(
            "the arguments are not JSON",
            str(error),
            """write an object, as in --args '{"name": "Ada"}'""",
            Exit.USAGE,
        ) from error


def instant(text: str | None) -> datetime | None:
    """An instant that was written by ISO 8601."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(
            "the instant is not understood",
            str(error),
            "write it with its zone, as in 2030-01-31T09:00+01:00",
            Exit.USAGE,
        ) from error


_WHOLE = 10_000


class Commands(TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with what each does."""
        names = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        rows = [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
