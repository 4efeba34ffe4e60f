"""Links between the pages lead somewhere: to a file that is there, to a heading that is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "bench/README.md",
    ROOT / "proof/README.md",
]


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def test_every_page_that_the_code_names_is_there() -> None:
    for folder in ("src", "tests", "proof", "bench", "support"):
        for file in (ROOT / folder).rglob("*.*"):
            if file.suffix in {".py", ".sql"}:
                for page in re.findall(r"\bdocs/[a-z-]+/[a-z0-9-]+\.md\b", file.read_text()):
                    assert (ROOT / page).exists(), f"{file}: {page}"
