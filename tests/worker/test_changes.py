"""What counts as a change of a project's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.worker.changes import Changes

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_a_python_file_that_is_made_changed_or_removed_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "shop" / "jobs.py"
    changes = Changes(tmp_path)
    assert changes.look() == set()
    assert {write(file, "one")} == changes.look()
    assert changes.look() == set()
    assert {write(file, "other")} == changes.look()
    file.unlink()
    assert changes.look() == {str(file)}


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        ".git/hook.py",
        ".venv/lib/module.py",
        "shop/__pycache__/jobs.py",
        "node_modules/tool/setup.py",
        "env/lib/module.py",
    ],
)
def test_what_people_do_not_edit_is_left_out(tmp_path: Path, name: str) -> None:
    write(tmp_path / "env/pyvenv.cfg", "")
    changes = Changes(tmp_path)
    write(tmp_path / name, "text")
    assert changes.look() == set()


async def test_many_files_that_are_saved_together_are_one_change(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    files = {write(tmp_path / f"{n}.py", "") for n in range(5)}
    assert await changes.settled() == files
