"""Each attack of the threat model names a test that exists, or says that it is open."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/threat-model.md"


def test_each_defense_names_tests_that_exist_or_is_open() -> None:
    table = PAGE.read_text().partition("## Attacks and defenses")[2]
    rows = re.findall(r"^\| (.+?) \| .+ \| (.+) \|$", table, re.MULTILINE)
    rows = [(attack, test) for attack, test in rows if test != "Test"]
    assert len(rows) > 40
    for attack, test in rows:
        paths = re.findall(r"`(tests/[\w/.]+)`", test)
        assert paths or test == "open", attack
        assert [path for path in paths if not (ROOT / path).is_file()] == [], attack
