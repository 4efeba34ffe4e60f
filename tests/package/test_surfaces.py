"""Every public surface of an earlier state is still there, by its name or by a row that names the
new one; and every surface of today is documented."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What `python -m support.surfaces` printed before names and modules were changed.
BEFORE = (Path(__file__).parent / "surfaces_before.txt").read_text().splitlines()
# `perform` ran an operation of the store, which only the package can make. It is private now.
INTERNAL = re.compile(r"python tenure\.admin\.\w+\.a?perform\b")
KINDS = {"code", "command", "http", "metric", "python", "setting"}
ROW = re.compile(r"\| `?([^`|]+?)`? \| `([^`|]+)` \| `([^`|]+)` \|")


def printed(*arguments: str) -> str:
    """What the list prints, in a process of its own: it configures Django."""
    command = [sys.executable, "-m", "support.surfaces", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def today() -> set[str]:
    return set(printed().splitlines())


class Mapping:
    """The rows of docs/design/renamed.md. A row of a kind renames a whole surface with all that
    follows it, or one word of it. A row of a module renames one word of the kind `python`."""

    def __init__(self, text: str) -> None:
        self.words: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.prefixes: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for where, before, now in ROW.findall(text):
            kind = where if where in KINDS else "python"
            if where in KINDS and not re.fullmatch(r"\w+", before):
                self.prefixes[kind].append((before, now))
            else:
                self.words[kind][before].add(now)

    def names(self, surface: str) -> set[str]:
        """What a surface of before may be called today, itself included."""
        kind, _, name = surface.partition(" ")
        whole = [name]
        for before, now in self.prefixes[kind]:
            if name.startswith(before) and not name[len(before) :][:1].isalnum():
                whole.append(now + name[len(before) :])
        return {f"{kind} {each}" for name in whole for each in self._renamed(kind, name)}

    def _renamed(self, kind: str, name: str) -> list[str]:
        words = re.split(r"(\W+)", name)
        choices = [sorted({word} | self.words[kind].get(word, set())) for word in words]
        return ["".join(chosen) for chosen in product(*choices)]


def gone(before: list[str], today: set[str], mapping: Mapping) -> list[str]:
    """What was there before, and is not there today by any of its names."""
    return [surface for surface in before if not mapping.names(surface) & today]


def test_every_surface_of_before_is_there_or_has_a_row(today: set[str]) -> None:
    mapping = Mapping((DOCS / "design" / "renamed.md").read_text())
    before = [surface for surface in BEFORE if not INTERNAL.match(surface)]
    assert gone(before, today, mapping) == []


@pytest.mark.parametrize(
    ("rows", "before", "is_gone"),
    [
        ("", "python tenure.Tenure.task(name)", False),
        ("", "python tenure.Tenure.job(name)", True),
        ("| `tenure.app` | `job` | `task` |", "python tenure.Tenure.job(name)", False),
        ("| `tenure.app` | `job` | `tusk` |", "python tenure.Tenure.job(name)", True),
        ("| metric | `tenure_x` | `tenure_y` |", "metric tenure_x{a}", False),
        ("| metric | `tenure_x` | `tenure_y` |", "metric tenure_xs{a}", True),
        ("| http | `tenure_x` | `tenure_y` |", "metric tenure_x{a}", True),
        ("| http | `GET /a` | `GET /b` |", "http GET /a ?old", True),
        ("| http | `GET /a` | `GET /b` |\n| http | `old` | `new` |", "http GET /a ?old", False),
    ],
)
def test_a_surface_is_gone_unless_a_row_leads_to_one_that_is_there(
    rows: str, before: str, is_gone: bool
) -> None:
    there = {"python tenure.Tenure.task(name)", "metric tenure_y{a}", "http GET /b ?new"}
    assert gone([before], there, Mapping(rows)) == [before] * is_gone


def test_no_row_renames_a_surface_to_one_that_is_not_there(today: set[str]) -> None:
    """A later rename changes the earlier row."""
    words = {
        kind: {w for s in today if s.startswith(kind) for w in re.split(r"\W+", s)}
        for kind in KINDS
    }
    text = (DOCS / "design" / "renamed.md").read_text()
    for kind, _, now in ROW.findall(text):
        if kind in KINDS:
            assert set(re.split(r"\W+", now)) <= words[kind] | {""}, now


def test_every_public_name_is_in_the_reference() -> None:
    """After a change: `just docs-names`."""
    page = (DOCS / "reference" / "names.md").read_text()
    assert page == printed("--page")
    assert re.findall(r"^\| `\w+` \|  \|.*", page, re.MULTILINE) == []


def test_every_other_surface_is_in_the_reference(today: set[str]) -> None:
    text = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    words = set(re.findall(r"--?\w[\w-]*|\w[\w-]*", text))
    routes = json.loads((DOCS / "reference" / "openapi.json").read_text())["paths"]
    for surface in today:
        kind, _, name = surface.partition(" ")
        if kind == "http":
            method, path, *_ = name.split()
            assert method.lower() in routes[path]
        elif kind != "python":
            assert re.findall(r"--?\w[\w-]*|\w[\w-]*", name)[-1] in words, surface
