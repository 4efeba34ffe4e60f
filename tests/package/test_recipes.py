"""Each file of tests belongs to one recipe: none is run twice, none is forgotten."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
JUSTFILE = (ROOT / "justfile").read_text()


def _suites(name: str) -> set[Path]:
    """The test files under the paths that a variable of the justfile lists."""
    found = re.search(rf'^{name} := "(.*)"$', JUSTFILE, re.MULTILINE)
    assert found, f"the justfile has no variable {name}"
    files: set[Path] = set()
    for path in (ROOT / each for each in found[1].split()):
        assert path.exists(), path
        files |= {path} if path.is_file() else set(path.rglob("test_*.py"))
    return files


def test_each_file_of_tests_belongs_to_one_recipe() -> None:
    server, docs, slow = _suites("server"), _suites("docs"), _suites("inner_slow")
    recipes = [
        _suites("inner") - slow,
        (_suites("core") | slow) - docs - server,
        _suites("cli"),
        server,
        _suites("integrations"),
        docs,
        _suites("mutations"),
    ]
    times = Counter(file for suite in recipes for file in suite)
    assert [file for file, n in times.items() if n > 1] == []
    everything = set((ROOT / "tests").rglob("test_*.py")) - set((ROOT / "tests/crash").iterdir())
    data = {file for file in everything if "snippets" in file.parts}
    assert everything - data - set(times) == set()
