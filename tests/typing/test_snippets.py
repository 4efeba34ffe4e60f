"""What a type checker says of programs that use Tenure: exactly what the snippets expect, by line.

A comment `# E: …` in a snippet is an error of the line of code below it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mypy import api

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Errors = Mapping[int, Sequence[str]]

SNIPPETS = sorted((Path(__file__).parent / "snippets").glob("*.py"))
# For the run over the whole repository, which is to find no errors; here they are wanted.
_OFF = "# mypy: ignore-errors"
_GIVEN = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): error: (?P<text>.*)")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Errors]:
    """The errors of one run over all snippets, by file and line."""
    here = tmp_path_factory.mktemp("typing")
    copies = []
    for snippet in SNIPPETS:
        copy = here / snippet.name
        text = snippet.read_text()
        assert text.startswith(_OFF)
        copy.write_text(text.replace(_OFF, "#", 1))
        copies.append(str(copy))
    options = [
        "--strict",
        "--config-file=",
        f"--cache-dir={here / 'cache'}",
        "--hide-error-context",
    ]
    out, wrong, _ = api.run([*options, "--no-error-summary", "--no-pretty", *copies])
    assert wrong == ""
    found: dict[str, dict[int, list[str]]] = {s.name: defaultdict(list) for s in SNIPPETS}
    for match in map(_GIVEN.fullmatch, out.splitlines()):
        if match:
            name = Path(match["file"]).name
            found[name][int(match["line"])].append(match["text"])
    return found


def expected(snippet: Path) -> Errors:
    """The errors that a snippet's comments announce."""
    announced: dict[int, list[str]] = {}
    waiting: list[str] = []
    for number, line in enumerate(snippet.read_text().splitlines(), start=1):
        code = line.strip()
        if code.startswith("# E: "):
            waiting.append(code.removeprefix("# E: "))
        elif waiting and code.startswith("#    "):
            waiting[-1] += " " + code.removeprefix("#    ")
        elif waiting:
            announced[number], waiting = waiting, []
    return announced


def plain(errors: Errors) -> dict[int, list[str]]:
    """In an order of their own, with the spaces that a line break took away."""
    return {line: sorted(" ".join(e.split()) for e in text) for line, text in errors.items()}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.stem)
def test_a_type_checker_says_exactly_what_is_expected(
    given: Mapping[str, Errors], snippet: Path
) -> None:
    assert plain(given[snippet.name]) == plain(expected(snippet))


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.stem)
def test_every_comment_in_a_snippet_is_read(snippet: Path) -> None:
    """One that is passed over would expect nothing, and be content with nothing."""
    read = [error for errors in expected(snippet).values() for error in errors]
    assert len(read) == snippet.read_text().count("# E: ") > 0
    assert all(error.endswith("]") for error in read)
