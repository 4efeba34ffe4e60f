"""The evidence that the pages name is there: files, and subjects of `just prove`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proof.__main__ import SUBJECTS

ROOT = Path(__file__).parents[2]
PAGES = (
    "evidence/guarantees.md",
    "evidence/proof.md",
    "how-to/what-happens-when.md",
    "how-to/stopping.md",
    "how-to/cpu-bound.md",
    "how-to/long-jobs.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_exists(page: str) -> None:
    named = re.findall(r"`((?:tests|proof|docs)/[^`]*)`", (ROOT / "docs" / page).read_text())
    assert named
    for path in named:
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES)
def test_every_proof_that_is_named_can_be_run(page: str) -> None:
    named = re.findall(r"just prove ([a-z_]+)", (ROOT / "docs" / page).read_text())
    assert named
    assert set(named) <= SUBJECTS.keys()


def test_every_section_of_what_happens_when_names_its_evidence() -> None:
    page = (ROOT / "docs/how-to/what-happens-when.md").read_text()
    sections = page.split("\n## ")[1:]
    assert len(sections) >= 15
    for section in sections:
        assert re.search(r"^Shown by `", section, re.MULTILINE), section.splitlines()[0]


def test_the_promise_is_that_of_the_protocol_word_for_word() -> None:
    def quoted(path: str) -> str:
        lines = (ROOT / path).read_text().splitlines()
        return " ".join(line[2:] for line in lines if line.startswith("> "))

    assert quoted("docs/evidence/guarantees.md") == quoted("docs/design/lease-protocol.md")
