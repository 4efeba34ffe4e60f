"""What counts as a change of a project's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.worker.reloader import FileWatcher

if TYPE_CHECKING:
    from pathlib import Path


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def test_a_python_file_that_is_made_changed_or_removed_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "shop" / "jobs.py"
    changes = FileWatcher(tmp_path)
    assert changes.poll() == set()
    assert {write(file, "one")} == changes.poll()
    assert changes.poll() == set()
    assert {write(file, "other")} == changes.poll()
    file.unlink()
    assert changes.poll() == {str(file)}


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
    changes = FileWatcher(tmp_path)
    write(tmp_path / name, "text")
    assert changes.poll() == set()


async def test_many_files_that_are_saved_together_are_one_change(tmp_path: Path) -> None:
    changes = FileWatcher(tmp_path)
    files = {write(tmp_path / f"{n}.py", "") for n in range(5)}
    assert await changes.wait_until_stable() == files
