"""What a reader of the tutorial has typed at its end passes a strict type checker."""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

PAGE = Path(__file__).parents[2] / "docs/tutorial.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"# (?P<name>\w+\.py)(?P<more>, continued)?\n")


def test_what_the_tutorial_shows_is_typed(tmp_path: Path) -> None:
    typed = tmp_path / "typed"
    typed.mkdir()
    for number, block in enumerate(_BLOCK.findall(PAGE.read_text())):
        named = _NAMED.match(block)
        file = typed / (named["name"] if named else f"program_{number}.py")
        kept = file.read_text() if named and named["more"] else ""
        file.write_text(kept + block)
    options = ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--no-pretty"]
    said, wrong, _ = api.run([*options, str(typed)])
    assert wrong == ""
    assert said.startswith("Success"), said
