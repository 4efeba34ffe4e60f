"""Filters of the templates."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from tenure.admin import State, measured
from tenure.server.schemas.jobs import JobOut
from tenure.server.schemas.stats import CountOut
from tenure.server.schemas.system import LeaseOut


def number(value: float) -> str:
    """12,480."""
    return f"{value:,}"


def count(value: CountOut) -> str:
    """Exact, or with a plus where counting has stopped."""
    return f"{value.value:,}{'+' if value.more else ''}"


def span(seconds: float | None) -> str:
    """How long something lasts."""
    return "–" if seconds is None else measured(timedelta(seconds=seconds))


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


def shown_as(job: JobOut, now: datetime | None = None) -> str:
    """The word that stands beside the icon."""
    now = now or datetime.now(UTC)
    if job.state is State.RUNNING:
        over = job.lease_expires_at is not None and job.lease_expires_at <= now
        return "expired" if over else "running"
    if job.state is not State.QUEUED:
        return job.state.value
    if job.held:
        return "held"
    if job.attempt or job.deaths:
        return "retrying"
    return "scheduled" if job.run_at > now else "queued"


_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line \d+')
_OTHERS = ("site-packages", "dist-packages", "/lib/python", "<frozen ", "/tenure/")


def own(trace: str) -> str:
    """A Python trace with the frames of the program alone; what is no such trace stays whole."""
    kept = "\n".join(_kept(trace.splitlines()))
    return kept if _FRAME.search(kept) or any(map(_FRAME.match, kept.splitlines())) else trace


def _kept(lines: list[str]) -> Iterator[str]:
    ours = True
    for line in lines:
        if found := _FRAME.match(line):
            ours = not any(part in found["path"] for part in _OTHERS)
        elif not line.startswith("    "):
            ours = True
        if ours:
            yield line


@dataclass(frozen=True, slots=True)
class LeaseCountdown:
    """A lease, when it ends by this server's clock, which is the page's, and how much of it is left
    in percent."""

    lease: LeaseOut
    until: datetime
    share: float


def lease_countdown(lease: LeaseOut) -> LeaseCountdown:
    """The lease, from what is left of it by the database's clock."""
    share = max(0.0, 100 * lease.remaining / lease.length) if lease.length else 0.0
    until = datetime.now(UTC) + timedelta(seconds=lease.remaining)
    return LeaseCountdown(lease, until, round(min(share, 100.0), 1))
