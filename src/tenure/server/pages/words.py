"""How figures, times and values read on a page."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from tenure.server.shapes.figures import CountOut

_MARKS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SHORTEST = 0.0005


def number(value: float) -> str:
    """12,480."""
    return f"{value:,}"


def count(value: CountOut) -> str:
    """Exact, or with a plus where counting has stopped."""
    return f"{value.value:,}{'+' if value.more else ''}"


def span(seconds: float | None) -> str:
    """How long something lasts, in the two largest units that matter."""
    if seconds is None:
        return "–"
    if seconds < _SHORTEST:
        return "0 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = int(seconds)
    parts: list[str] = []
    for size, mark in _MARKS:
        if whole >= size or parts:
            parts.append(f"{whole // size} {mark}")
            whole %= size
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def ago(instant: datetime | None) -> str:
    """When something was or will be, from now; the exact time is in its title."""
    if instant is None:
        return Markup('<span class="none">–</span>')
    seconds = (datetime.now(UTC) - instant).total_seconds()
    words = f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"
    stamp = instant.astimezone(UTC)
    return Markup('<time datetime="{}" data-relative title="{} UTC">{}</time>').format(
        stamp.isoformat(), f"{stamp:%Y-%m-%d %H:%M:%S}", words
    )


def clock(instant: datetime | None) -> str:
    """The exact time, which the page shows in UTC or as the visitor's clocks do."""
    if instant is None:
        return Markup('<span class="none">–</span>')
    stamp = instant.astimezone(UTC)
    return Markup('<time datetime="{}" data-exact>{} UTC</time>').format(
        stamp.isoformat(), f"{stamp:%Y-%m-%d %H:%M:%S}"
    )


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def brief(value: Any, most: int = 120) -> str:
    """JSON in one line, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plural(value: int, one: str, many: str = "") -> str:
    """1 job, 2 jobs."""
    return f"{value:,} {one if value == 1 else many or f'{one}s'}"


def who(actor: str) -> str:
    """Whoever did something, by the name that people know: `token:7:ana` is ana."""
    kind, _, rest = actor.partition(":")
    return rest.partition(":")[2] or actor if kind == "token" else actor


def size(value: float | None) -> str:
    """12.5 MB."""
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ago": ago,
    "brief": brief,
    "clock": clock,
    "count": count,
    "number": number,
    "plural": plural,
    "pretty": pretty,
    "size": size,
    "span": span,
    "who": who,
}
