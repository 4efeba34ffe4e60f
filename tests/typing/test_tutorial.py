"""What a reader of the tutorial has typed at the end of a page passes a strict type checker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

PAGES = sorted((Path(__file__).parents[2] / "docs/tutorial").glob("*.md"))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"# (?P<name>\w+\.py)(?P<more>, continued)?\n")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checker's cache, shared by the pages."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_tutorial_shows_is_typed(page: Path, tmp_path: Path, cache: Path) -> None:
    for number, block in enumerate(_BLOCK.findall(page.read_text())):
        named = _NAMED.match(block)
        file = tmp_path / (named["name"] if named else f"program_{number}.py")
        before = file.read_text() if named and named["more"] else ""
        file.write_text(before + block)
    options = ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-pretty"]
    output, errors, _ = api.run([*options, str(tmp_path)])
    assert errors == ""
    assert output.startswith("Success"), output
