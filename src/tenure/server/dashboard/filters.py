"""Template filters."""

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
    """Format a count, with a plus if counting stopped there."""
    return f"{value.value:,}{'+' if value.more else ''}"


def span(seconds: float | None) -> str:
    """Format a duration."""
    return "–" if seconds is None else measured(timedelta(seconds=seconds))


def ago(instant: datetime | None) -> str:
    """Format a time relative to now. The title shows the exact time."""
    if instant is None:
        return Markup('<span class="none">–</span>')
    seconds = (datetime.now(UTC) - instant).total_seconds()
    text = f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"
    stamp = instant.astimezone(UTC)
    return Markup('<time datetime="{}" data-relative title="{} UTC">{}</time>').format(
        stamp.isoformat(), f"{stamp:%Y-%m-%d %H:%M:%S}", text
    )


def clock(instant: datetime | None) -> str:
    """Format an exact time. The page can show it in UTC or in local time."""
    if instant is None:
        return Markup('<span class="none">–</span>')
    stamp = instant.astimezone(UTC)
    return Markup('<time datetime="{}" data-exact>{} UTC</time>').format(
        stamp.isoformat(), f"{stamp:%Y-%m-%d %H:%M:%S}"
    )


def pretty(value: Any) -> str:
    """Format JSON with indentation."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def brief(value: Any, most: int = 120) -> str:
    """Format JSON on one line, cut to a length."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plural(value: int, one: str, many: str = "") -> str:
    """1 job, 2 jobs."""
    return f"{value:,} {one if value == 1 else many or f'{one}s'}"


def who(actor: str) -> str:
    """Format an actor's name: `token:7:ana` becomes `ana (token 7)`.

    The number is shown because two tokens may have the same name.
    """
    kind, _, rest = actor.partition(":")
    number, _, name = rest.partition(":")
    return f"{name} (token {number})" if kind == "token" and name else actor


# Characters that are invisible or that reorder the text around them: right-to-left overrides,
# isolates, marks and zero-width characters. Unescaped, U+202E would display exe.gpj as jpg.exe.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
# Attribute values are escaped, so a tag contains no other angle bracket.
_TAG_OR_UNSEEN = re.compile(f"(<[^>]*>)|{_UNSEEN.pattern}")
_READ_ATTRIBUTE = re.compile(r'\b(?:title|aria-label|alt|placeholder|data-label)="[^"]*"')


def show_unseen(page: str) -> str:
    """Escape a page's direction marks and zero-width characters wherever a person reads them.

    Other attributes keep them, because a link or form must contain the exact name that it acts on.
    """
    if not _UNSEEN.search(page):
        return page
    return _TAG_OR_UNSEEN.sub(_shown, page)


def _shown(match: re.Match[str]) -> str:
    if match[1] is None:
        return f"\\u{ord(match[0]):04x}"
    return _READ_ATTRIBUTE.sub(
        lambda each: _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", each[0]), match[1]
    )


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
    """Return the state to show for a job."""
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
    """Keep only the frames of the user's program in a Python traceback. Other text is unchanged."""
    kept = "\n".join(_kept(trace.splitlines()))
    return kept if _FRAME.search(kept) or any(map(_FRAME.match, kept.splitlines())) else trace


def _kept(lines: list[str]) -> Iterator[str]:
    ours = True
    for line in lines:
        if frame := _FRAME.match(line):
            ours = not any(part in frame["path"] for part in _OTHERS)
        elif not line.startswith("    "):
            ours = True
        if ours:
            yield line


@dataclass(frozen=True, slots=True)
class LeaseCountdown:
    """A lease, its expiry on this server's clock, and the percentage of it that is left."""

    lease: LeaseOut
    until: datetime
    share: float


def lease_countdown(lease: LeaseOut) -> LeaseCountdown:
    """Compute the countdown from the time left by the database's clock."""
    share = max(0.0, 100 * lease.remaining / lease.length) if lease.length else 0.0
    until = datetime.now(UTC) + timedelta(seconds=lease.remaining)
    return LeaseCountdown(lease, until, round(min(share, 100.0), 1))
