"""Every command, option and exit code is in the reference, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from tenure.cli.commands import app
from tenure.cli.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()


def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command under this one, itself included unless it only groups others."""
    commands = getattr(command, "commands", {})
    if not commands or path == "tenure":
        yield path, command
    for name, inner in commands.items():
        # `tenure worker` runs a worker by a hidden command: it is the group's own.
        yield from walk(inner, path if inner.hidden else f"{path} {name}")


def sections() -> dict[str, str]:
    """The page's text by the command in its heading, without the arguments."""
    parts = re.split(r"^## `(.+)`$", PAGE, flags=re.MULTILINE)[1:]
    return {
        " ".join(word for word in heading.split() if word.islower()): text
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


NO_DATA = {
    "tenure",
    "tenure init",
    "tenure dev",
    "tenure demo",
    "tenure worker",
    "tenure scheduler",
    "tenure server",
}
COMMANDS = dict(walk(typer.main.get_command(app), "tenure"))


def options(command: Any) -> set[str]:
    return {
        flag
        for parameter in command.params
        if parameter.param_type_name == "option"
        for flag in (*parameter.opts, *parameter.secondary_opts)
    } - {"--help"}


def test_every_command_is_documented_and_none_that_is_not_there() -> None:
    assert list(sections()) == list(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_documented_and_none_that_is_not_there(path: str) -> None:
    rows = re.findall(r"^\| (`-.*?) \|", sections()[path], re.MULTILINE)
    documented = {flag for row in rows for flag in re.findall(r"`(-[\w-]+)`", row)}
    assert documented - {"--help"} == options(COMMANDS[path])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert not [p.name for p in command.params if not getattr(p, "help", None)]


def test_no_sentence_of_a_help_is_cut() -> None:
    pages = []
    for group in (COMMANDS["tenure"], *COMMANDS["tenure"].commands.values()):
        if getattr(group, "commands", None):
            context = group.make_context("tenure", ["--help"], resilient_parsing=True)
            pages.append(group.get_help(context).partition("Commands:")[2])
    assert len(pages) > 9
    assert not [page for page in pages if "..." in page or not page.strip()]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_argument_is_in_the_heading(path: str) -> None:
    [heading] = [h for h in re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE) if _bare(h) == path]
    arguments = [p for p in COMMANDS[path].params if p.param_type_name == "argument"]
    assert heading == " ".join([path, *(argument.metavar for argument in arguments)])


def _bare(heading: str) -> str:
    return " ".join(word for word in heading.split() if word.islower())


def test_every_exit_code_is_documented_by_its_name() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [(int(code), name) for code, name in rows] == [(code.value, code.name) for code in Exit]


@pytest.mark.parametrize("path", COMMANDS)
def test_what_gives_data_gives_it_as_json_too(path: str) -> None:
    assert ("--json" in options(COMMANDS[path])) is (path not in NO_DATA)


@pytest.mark.parametrize(
    "verb", ["enqueue", "retry", "cancel", "revoke", "hold", "resume", "move", "delete"]
)
def test_what_changes_jobs_takes_who_and_why(verb: str) -> None:
    """Shows R36."""
    assert {"--by", "--reason"} <= options(COMMANDS[f"tenure job {verb}"])


@pytest.mark.parametrize(
    "verb", ["create", "update", "pause", "resume", "delete", "run", "backfill"]
)
def test_what_changes_schedules_takes_who_and_why(verb: str) -> None:
    """Shows R28."""
    assert {"--by", "--reason"} <= options(COMMANDS[f"tenure schedule {verb}"])


@pytest.mark.parametrize(
    "path",
    [
        *("failed retry", "failed discard", "worker drain", "setting set", "setting reset"),
        *(f"operation {v}" for v in ("pause", "resume", "abort")),
        *(f"queue {v}" for v in ("pause", "resume", "limit", "configure")),
    ],
)
def test_what_changes_many_jobs_takes_who_and_why(path: str) -> None:
    """Shows R15, R36."""
    assert {"--by", "--reason"} <= options(COMMANDS[f"tenure {path}"])


@pytest.mark.parametrize(
    "path",
    [
        "db migrate",
        "schedule backfill",
        *(f"job {v}" for v in ("retry", "cancel", "revoke", "hold", "move", "delete")),
        *(f"failed {v}" for v in ("retry", "discard")),
    ],
)
def test_what_changes_many_can_be_rehearsed(path: str) -> None:
    assert "--dry-run" in options(COMMANDS[f"tenure {path}"])
