"""Tables in Markdown, and their places in a page: between `<!-- name -->` and `<!-- /name -->`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """The first columns to the left, being words, and the others to the right."""
    lines = [_row(head), "|" + "---|" * words + "--:|" * (len(head) - words), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def fill(page: str, parts: Mapping[str, str]) -> str:
    """The page with each part in its place, instead of what was there."""
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"no place for {name!r}: write {begin.strip()} and {end} in the page")
        page = f"{before}{begin}{text}\n{end}{after}"
    return page
