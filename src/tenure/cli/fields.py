"""Options that set a job's fields."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from tenure.cli.options import arguments, duration_option, instant, parse_duration
from tenure.config import FOREVER


def key_duration(text: str | None) -> timedelta | None:
    """Read how long to keep a key: a duration, or `forever`."""
    return FOREVER if text == "forever" else parse_duration(text)


def duration(
    flag: str, text: str, *, parser: Callable[[str], Any] = parse_duration, default: str = ""
) -> Any:
    """Return an option that takes a duration."""
    option = duration_option(flag, text, parser=parser, show_default=default or False)
    return Annotated[timedelta | None, option]


def moment(flag: str, text: str) -> Any:
    """Return an option that takes a time."""
    option = typer.Option(flag, metavar="TIME", help=text, parser=instant)
    return Annotated[datetime | None, option]


def job_fields(*, defaults: bool) -> dict[str, Any]:
    """Return job and schedule options, with or without their defaults in the help."""

    def default(text: str) -> str | bool:
        return text if defaults else False

    return {
        "args": Annotated[
            dict[str, Any] | None,
            typer.Option(
                "--args",
                metavar="JSON",
                help="Arguments as a JSON object; - reads stdin.",
                show_default=default("{}"),
                parser=arguments,
            ),
        ],
        "queue": Annotated[
            str | None,
            typer.Option(
                "-q",
                "--queue",
                metavar="NAME",
                help="Enqueue into this queue.",
                show_default=default("default"),
            ),
        ],
        "priority": Annotated[
            int | None,
            typer.Option(
                "--priority",
                metavar="0-9",
                help="Set the priority; 9 is the most urgent.",
                show_default=default("5"),
            ),
        ],
        "max_attempts": Annotated[
            int | None,
            typer.Option(
                "--max-attempts",
                metavar="N",
                help="Try a job at most N times.",
                show_default=default("the queue's"),
            ),
        ],
        "timeout": duration(
            "--timeout",
            "Limit each attempt to this time, such as 5m.",
            default="the task's" if defaults else "",
        ),
        "expires_in": duration(
            "--expires-in",
            "Cancel the job unless it starts within this time.",
            default="the task's" if defaults else "",
        ),
        "tags": Annotated[
            list[str] | None,
            typer.Option("--tag", metavar="TEXT", help="Add a tag to find jobs by; repeatable."),
        ],
    }


ENQUEUE_FIELDS: Mapping[str, Any] = {
    **job_fields(defaults=True),
    "delay": duration("--delay", "Wait this long before the first attempt."),
    "run_at": moment("--run-at", "Run at this time, such as 2030-01-31T09:00+01:00."),
    "key": Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", help="Enqueue only one live job per key."),
    ],
    "key_for": duration(
        "--key-for", "Keep the key this long after the job, or forever.", parser=key_duration
    ),
    "lease": duration("--lease", "Set the lease, such as 30s.", default="the queue's"),
    "target": Annotated[
        int | None,
        typer.Option("--target", metavar="N", help="Complete the job once it has N items."),
    ],
}

_CHANGED = job_fields(defaults=False)
ARGS_FIELD: Mapping[str, Any] = {"args": _CHANGED["args"]}
EDIT_FIELDS: Mapping[str, Any] = {
    **{name: _CHANGED[name] for name in ("args", "priority", "max_attempts", "timeout")},
    "run_at": moment("--run-at", "Run at this time, or now if past."),
    "tags": Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TEXT", help="Replace all tags by this one; repeatable."),
    ],
}
