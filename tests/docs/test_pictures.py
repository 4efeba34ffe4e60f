"""Every picture that a page names exists, every picture is used, and none is large."""

from __future__ import annotations

import re
from pathlib import Path

from support.pictures import PAGES, PICTURES, SIZES, THEMES

ROOT = Path(__file__).parents[2]
SHOWING = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"(?:\]\(|src=\"|srcset=\")([^)\s\"]*pictures/[^)\s\"]+)")
LARGEST = 150_000
LARGEST_OF_ALL = 4_000_000


def named() -> set[Path]:
    """The pictures that pages name."""
    return {
        (page.parent / path).resolve()
        for page in SHOWING
        for path in NAMED.findall(page.read_text())
    }


def test_every_named_picture_exists_and_every_picture_is_used() -> None:
    assert named() == set(PICTURES.iterdir())


def test_each_page_of_the_dashboard_is_pictured_in_both_themes_and_sizes() -> None:
    wanted = {
        f"{page}-{theme}-{width}.png" for page in PAGES for theme in THEMES for width in SIZES
    }
    assert {picture.name for picture in PICTURES.glob("*.png")} == wanted


def test_the_pictures_are_small() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in PICTURES.glob("*.png")}
    assert max(sizes.values()) < LARGEST
    assert sum(sizes.values()) < LARGEST_OF_ALL
