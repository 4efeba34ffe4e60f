"""The help of every command is plain, and docs/reference/commands.md is made from it."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer

from support import commands as reference
from tenure.cli.commands import app
from tenure.cli.errors import MEANINGS, Exit
from tenure.cli.help import describe

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
NO_DATA = {
    "tenure",
    "tenure init",
    "tenure dev",
    "tenure demo",
    "tenure worker",
    "tenure scheduler",
    "tenure server",
}
COMMANDS = dict(reference.commands(typer.main.get_command(app)))
LEAVES = [path for path in COMMANDS if path != "tenure"]
LONGEST_HELP = 10


def options(command: Any) -> set[str]:
    return {
        flag
        for parameter in command.params
        if parameter.param_type_name == "option"
        for flag in (*parameter.opts, *parameter.secondary_opts)
    } - {"--help"}


def help_of(path: str) -> str:
    """Return the help of a command as a person sees it, in one line."""
    command = COMMANDS[path]
    context = command.make_context(path, [], resilient_parsing=True)
    return " ".join(command.get_help(context).split())


def test_the_page_is_what_the_script_writes() -> None:
    """After a change: `just docs-commands`."""
    assert reference.page() == PAGE.read_text()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert not [p.name for p in command.params if not getattr(p, "help", None)]


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_an_example_that_parses(path: str) -> None:
    label, _, example = COMMANDS[path].epilog.partition(": ")
    assert (label, example.startswith(path)) == ("Example", True)
    words = shlex.split(example.removeprefix(path))
    arguments = list(takewhile(lambda word: word not in {"|", ">"}, words))
    COMMANDS[path].make_context(path, arguments)
    assert example in help_of(path)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_of_an_option_is_one_short_sentence(path: str) -> None:
    for parameter in COMMANDS[path].params:
        text = describe(parameter).help
        assert len(text.split()) <= LONGEST_HELP, text
        assert re.fullmatch(r"[A-Z].*\.", text), text
        assert not re.search(r"\belse\b|\bdefault:", text), text


@pytest.mark.parametrize("path", COMMANDS)
def test_every_help_is_readable_and_names_no_file_of_the_repository(path: str) -> None:
    text = help_of(path)
    assert not re.search(r"\[\[|<\w+( range)?>|<=x|x>=|\bdocs/", text), text
    first = COMMANDS[path].help.partition("\n\n")[0]
    assert len(first.split()) <= LONGEST_HELP, first


def test_no_sentence_of_a_help_is_cut() -> None:
    pages = []
    for group in (COMMANDS["tenure"], *COMMANDS["tenure"].commands.values()):
        if getattr(group, "commands", None):
            context = group.make_context("tenure", ["--help"], resilient_parsing=True)
            pages.append(group.get_help(context).partition("Commands:")[2])
    assert len(pages) > 9
    assert not [page for page in pages if "..." in page or not page.strip()]


def test_every_exit_code_is_documented_by_its_name() -> None:
    assert list(MEANINGS) == list(Exit)
    codes = re.findall(r"\b(\d+) [a-z]", help_of("tenure").partition("Exit codes:")[2])
    assert [int(code) for code in codes] == [code.value for code in Exit]


@pytest.mark.parametrize("path", COMMANDS)
def test_what_gives_data_gives_it_as_json_too(path: str) -> None:
    assert ("--json" in options(COMMANDS[path])) is (path not in NO_DATA)


@pytest.mark.parametrize(
    "verb",
    [
        *("enqueue", "retry", "cancel", "revoke", "hold", "resume", "move", "edit", "rerun"),
        "delete",
    ],
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
        "erase",
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
        "erase",
        "schedule backfill",
        *(f"job {v}" for v in ("retry", "cancel", "revoke", "hold", "move", "delete")),
        *("job edit", "job rerun"),
        *(f"failed {v}" for v in ("retry", "discard")),
    ],
)
def test_what_changes_many_can_be_rehearsed(path: str) -> None:
    assert "--dry-run" in options(COMMANDS[f"tenure {path}"])
