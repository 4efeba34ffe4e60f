"""One frame: an overview as lines of a terminal, none wider than it, and no more than it has."""

from collections.abc import Sequence
from datetime import UTC
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from tenure.cli.top import parts
from tenure.cli.words import safe

if TYPE_CHECKING:
    from tenure.admin import Overview
    from tenure.cli.top.view import View

# A heading, and lines of which the first may be a table's head.
Section = tuple[str, Sequence[Text]]
# From here on, workers stand beside queues and completions.
_WIDE = 140
_LEAST = 3
_KEYS = "q quit · s sort · j k choose · p pause or resume · o open a job"


def frame(
    overview: "Overview | None",
    view: "View",
    *,
    width: int,
    height: int | None,
    state: str = "",
) -> list[Text]:
    """The lines; as many as there is something to show where the height is None. `state` says how
    fresh it is."""
    title = _title(overview, width, state)
    foot = _foot(view, width) if height is not None else []
    if overview is None:
        body = [_cut(Text(line), width) for line in wrap(safe(state), width)]
        return _fitted([title, *body], foot, height)
    head = [title, *(_cut(line, width) for line in parts.numbers(overview, width))]
    if view.opened is not None:
        body = [_cut(Text(safe(line)), width) for line in view.opened]
        return _fitted([*head, _rule("job", width), *body], foot, height)
    room = None if height is None else height - len(head) - len(foot)
    return _fitted([*head, *_body(overview, view, width, room)], foot, height)


def _body(overview: "Overview", view: "View", width: int, room: int | None) -> list[Text]:
    attention = ("needs attention", parts.attention(overview, width))
    if width < _WIDE:
        queues, completions = _work(overview, view, width)
        sections = [attention, queues, _workers(overview, width), completions]
        return _column(sections, width, room)
    left, right = width // 2 - 1, width - width // 2 - 1
    top = _column([attention], width, None)
    below = None if room is None else max(0, room - len(top))
    columns = zip_longest(
        _column(_work(overview, view, left), left, below),
        _column([_workers(overview, right)], right, below),
        fillvalue=Text(),
    )
    return [*top, *(_beside(one, other, left) for one, other in columns)]


def _work(overview: "Overview", view: "View", width: int) -> list[Section]:
    return [
        (f"queues by {view.order}", parts.queues(overview, view, width)),
        ("completed lately", parts.completions(overview, width)),
    ]


def _workers(overview: "Overview", width: int) -> Section:
    return "workers", parts.workers(overview, width)


def _beside(one: Text, other: Text, width: int) -> Text:
    line = one.copy()
    line.truncate(width, pad=True)
    return line.append("  ").append_text(other)


def _column(sections: Sequence[Section], width: int, room: int | None) -> list[Text]:
    """The sections below each other, each with its heading."""
    rows = _shared([len(lines) for _, lines in sections], room)
    return [
        _cut(line, width)
        for (name, lines), most in zip(sections, rows, strict=True)
        for line in (_rule(name, width), *_shown(lines, most))
    ]


def _shared(wanted: Sequence[int], room: int | None) -> list[int]:
    """How many lines each section gets, its heading aside: each a few, the first ones the rest."""
    if room is None:
        return list(wanted)
    given = [min(each, _LEAST) for each in wanted]
    left = room - len(wanted) - sum(given)
    for n, each in enumerate(wanted):
        more = max(0, min(each - given[n], left))
        given[n] += more
        left -= more
    return given


def _shown(lines: Sequence[Text], most: int) -> list[Text]:
    """So many of the lines, the first one and the chosen one among them; the last one says how
    many are left out."""
    if len(lines) <= most:
        return list(lines)
    room = max(0, most - 2)
    chosen = next((n for n, line in enumerate(lines) if line.plain.startswith(parts.CHOSEN)), 0)
    first = max(1, chosen - room + 1)
    kept = [lines[0], *lines[first : first + room]]
    return [*kept, Text(f"… and {len(lines) - len(kept)} more", style="dim")][:most]


def _fitted(lines: list[Text], foot: list[Text], height: int | None) -> list[Text]:
    """The lines with the foot at the bottom of the terminal."""
    if height is None:
        return lines
    room = height - len(foot)
    return [*lines[:room], *[Text()] * (room - len(lines)), *foot]


def _title(overview: "Overview | None", width: int, state: str) -> Text:
    at = "" if overview is None else f"  {overview.now.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    line = Text(f"tenure top{at}", style="bold")
    room = width - line.cell_len - 2
    if room > 0:
        right = Text(safe(state), style="dim")
        right.truncate(room, overflow="ellipsis")
        line.append(" " * (width - line.cell_len - right.cell_len)).append_text(right)
    return _cut(line, width)


def _foot(view: "View", width: int) -> list[Text]:
    text = view.prompt or view.said or ("any key: back" if view.opened is not None else _KEYS)
    return [_cut(Text(safe(text), style="reverse"), width)]


def _rule(name: str, width: int) -> Text:
    line = Text(f"── {name} ", style="dim")
    return line.append("─" * max(0, width - line.cell_len))


def _cut(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis")
    return line
