"""`tenure init` writes the first two files, and never over others."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from tenure._settings import PROGRAM_SETTINGS
from tenure.cli.errors import Exit

ROOT = Path(__file__).parents[2]

if TYPE_CHECKING:
    from tests.cli.conftest import Command


def test_two_files_are_written_and_the_next_step_is_printed(command: Command) -> None:
    ended = command("init")
    assert (ended.code, ended.out) == (Exit.DONE, "")
    assert ended.err == "wrote jobs.py\nwrote tenure.toml\nnext: tenure dev\n"
    assert tomllib.loads((command.directory / "tenure.toml").read_text()) == {"app": "jobs:app"}


def test_a_directory_can_be_named_and_is_made(command: Command) -> None:
    ended = command("init", "new/shop")
    assert ended.err.splitlines()[-1] == "next: cd new/shop && tenure dev"
    assert (command.directory / "new" / "shop" / "jobs.py").exists()


def test_a_file_that_is_there_is_left_as_it_is(command: Command) -> None:
    (command.directory / "jobs.py").write_text("mine")
    ended = command("init")
    assert ended.code == Exit.DONE
    assert "jobs.py exists and stays unchanged" in ended.err
    assert (command.directory / "jobs.py").read_text() == "mine"


def test_unwritable_place_is_reported(command: Command) -> None:
    (command.directory / "file").write_text("")
    ended = command("init", "file/shop")
    assert ended.code == Exit.FAILED
    assert ended.error[0] == "the files cannot be written"
    assert (
        ended.error[2] == "choose a directory that you can write to, as in: tenure init myproject"
    )


def test_the_tasks_are_those_that_the_readme_shows(command: Command) -> None:
    command("init")
    shown = (ROOT / "README.md").read_text().partition("```python\n# jobs.py\n")[2]
    assert shown.partition("```")[0] == (command.directory / "jobs.py").read_text()


def test_every_setting_that_the_file_offers_is_one_with_its_built_in_value(
    command: Command,
) -> None:
    command("init")
    lines = (command.directory / "tenure.toml").read_text().splitlines()
    offered = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines if " = " in line))
    assert offered.keys() <= PROGRAM_SETTINGS.keys()
    assert len(offered) > 5
    for name in ("concurrency", "processes", "grace", "log_level"):
        assert offered[name] == PROGRAM_SETTINGS[name].built_in
