"""The site has every page. That it builds without a warning is shown by `just docs`."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")} - {"index"}


def listed() -> list[str]:
    """What the tables of contents name, pages and patterns alike."""
    table = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    tables = table.findall((DOCS / "index.md").read_text())
    return [line for table in tables for line in table.split("\n") if line and line[0] != ":"]


def test_every_page_is_in_one_table_of_contents_and_none_is_named_that_is_not_there() -> None:
    found = [
        str(page.relative_to(DOCS).with_suffix(""))
        for name in listed()
        for page in DOCS.glob(f"{name}.md")
    ]
    assert sorted(found) == sorted(PAGES)
    assert all(list(DOCS.glob(f"{name}.md")) for name in listed())


def test_guides_reference_design_and_decisions_come_in_by_themselves() -> None:
    assert {"how-to/*", "reference/*", "design/*", "decisions/*"} <= set(listed())


def test_nothing_is_left_out_no_warning_is_silenced_and_nothing_is_fetched() -> None:
    text = runpy.run_path(str(DOCS / "conf.py"))
    assert not text.keys() & {"exclude_patterns", "suppress_warnings", "nitpick_ignore"}
    ours = {"myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"}
    assert set(text["extensions"]) == ours


def test_every_page_begins_with_its_title() -> None:
    included = {"changelog", "contributing", "security", "upgrading"}
    for page in PAGES - included:
        text = (DOCS / f"{page}.md").read_text()
        assert text.startswith("# "), page
        assert len(re.findall(r"^# (?!\w+\.py)", _prose(text), re.MULTILINE)) == 1, page


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
