"""List each numbered requirement with the tests that say that they show it.

`just requirements` prints the list. `just requirements R8 R17` prints only these, with the
docstring of each test.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.binaries import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ROW = re.compile(r"^\| (R\d+) \| (.+) \|$", re.MULTILINE)
_SHOWS = re.compile(r"\bShows ((?:R\d+(?:, | and )?)+)")
_NUMBER = re.compile(r"R\d+")


@dataclass(frozen=True, slots=True)
class Claim:
    """A test that says that it shows requirements."""

    path: str
    line: int
    name: str
    docstring: str
    numbers: tuple[str, ...]


def requirements() -> Mapping[str, str]:
    """Each number and its text, from tests/requirements.md. Rows before the first heading are
    about what is missing."""
    _, _, tables = (ROOT / "tests" / "requirements.md").read_text().partition("\n## ")
    return dict(_ROW.findall(tables))


def claims() -> Sequence[Claim]:
    """The tests, and files of tests, whose docstrings name requirements."""
    return [
        claim
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for claim in _in_file(str(file.relative_to(ROOT)), file.read_text())
    ]


def _in_file(path: str, text: str) -> Iterator[Claim]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node) or ""
        numbers = [
            number for found in _SHOWS.findall(docstring) for number in _NUMBER.findall(found)
        ]
        if numbers:
            line = 1 if isinstance(node, ast.Module) else node.lineno
            name = "the whole file" if isinstance(node, ast.Module) else node.name
            yield Claim(path, line, name, " ".join(docstring.split()), tuple(numbers))


def lines(wanted: Sequence[str] = ()) -> Iterator[str]:
    """The list: each requirement, how many tests show it, and which."""
    found = claims()
    for number, text in requirements().items():
        if wanted and number not in wanted:
            continue
        tests = [claim for claim in found if number in claim.numbers]
        yield f"{number} ({len(tests)}): {text}"
        for claim in tests:
            yield f"    {claim.path}:{claim.line} {claim.name}"
            if wanted:
                yield f"        {claim.docstring}"


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lines(sys.argv[1:])))
