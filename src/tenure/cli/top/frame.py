"""One frame of `tenure top`."""

from collections.abc import Sequence
from datetime import UTC, timedelta
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from tenure.admin import measured
from tenure.cli.output import safe

if TYPE_CHECKING:
    from tenure.cli.top.state import TopState
    from tenure.types import Count, Overview, QueueSummary, WorkerRow


def brief(length: timedelta | None) -> str:
    """Return a duration in a few characters."""
    return "-" if length is None else measured(length).replace("min", "m").replace(" ", "")


def bar(value: float, full: float, width: int) -> str:
    """Return a bar of this width, filled to value / full."""
    filled = 0 if full <= 0 else min(width, round(width * value / full))
    if value > 0 and width:
        filled = max(1, filled)
    return "█" * filled + "·" * (width - filled)


CHOSEN = "> "
_LEVELS = {"problem": ("!", "bold red"), "warning": ("·", "yellow")}
# Each state has its own symbol, for terminals without colors.
_STATES = (
    ("due", "█", "bright_blue"),
    ("running", "▓", "blue"),
    ("scheduled", "▒", "bright_black"),
    ("held", "░", "magenta"),
    ("failed", "×", "red"),
)


def numbers(overview: "Overview", width: int) -> list[Text]:
    """Return the seven numbers, and a bar of jobs by state."""
    found = overview.numbers
    shown = (
        ("due", str(found.due), ""),
        ("running", str(found.running), ""),
        ("oldest due", brief(found.oldest_due), ""),
        ("retrying", str(found.retrying), "yellow" if found.retrying.value else ""),
        ("done today", str(found.completed_today), "green"),
        ("failed 24h", str(found.failed_day), "red" if found.failed_day.value else ""),
        ("workers", f"{found.workers_active}/{found.workers_total}", ""),
    )
    room = width // len(shown)
    labels, values = Text(), Text()
    for label, value, style in shown:
        labels.append(label[: room - 1].ljust(room), style="dim")
        values.append(value[: room - 1].ljust(room), style=f"bold {style}".strip())
    return [labels, values, *_by_state(overview, width)]


def _by_state(overview: "Overview", width: int) -> list[Text]:
    counts: list[Count] = [getattr(overview.numbers, name) for name, _, _ in _STATES]
    whole = sum(count.value for count in counts)
    line, legend = Text(), Text()
    for (name, sign, style), count in zip(_STATES, counts, strict=True):
        cells = round(width * count.value / whole) if whole else 0
        line.append(sign * max(cells, 1 if count.value else 0), style=style)
        legend.append(f"{sign} ", style=style).append(f"{name} {count}   ")
    expired = overview.numbers.expired
    legend.append(f"expired {expired}", style="yellow" if expired.value else "dim")
    return [line if whole else Text("·" * width, style="dim"), legend]


def attention_lines(overview: "Overview", width: int) -> list[Text]:
    """Return the alerts, each with its command if there's room, or a line that says all is well."""
    if not overview.attention:
        return [Text(safe(overview.words), style="green")]
    lines = []
    for each in overview.attention:
        sign, style = _LEVELS[each.level]
        line = Text(f"{sign} {safe(each.sentence)}", style=style)
        if line.cell_len + len(each.command) + 4 <= width:
            line.append(f"  → {safe(each.command)}", style="dim")
        lines.append(line)
    if overview.more:
        lines.append(Text(f"  and {overview.more} more: tenure doctor", style="dim"))
    return lines


def queues(overview: "Overview", view: "TopState", width: int) -> list[Text]:
    """Return the queues with their counts and a bar. The selected one is marked."""
    found = view.sorted(overview.queues)
    if not found:
        return [Text("no queues yet", style="dim")]
    name = min(24, max(8, width - 62))
    room = max(0, min(30, width - name - 54))
    most = max((queue.depth.due.value for queue in found), default=0)
    counts = " ".join(f"{label:>8}" for label in ("due", "running", "oldest", "failed"))
    lines = [Text(f"  {'queue':<{name}} {counts}  state", style="dim")]
    lines += [_queue(queue, view, name, room, most) for queue in found]
    return lines


def _queue(queue: "QueueSummary", view: "TopState", name: int, room: int, most: int) -> Text:
    depth = queue.depth
    chosen = queue.name == view.chosen
    shown = Text(safe(queue.name))
    shown.truncate(name, overflow="ellipsis", pad=True)
    state = "paused" if queue.paused else ("served" if queue.workers else "no worker")
    late = bool(depth.due.value) and not queue.workers
    style = "yellow" if queue.paused else ("red" if late else "")
    line = Text(CHOSEN if chosen else "  ", style="bold" if chosen else "").append_text(shown)
    line.append(f" {depth.due!s:>8} {depth.running!s:>8} {brief(depth.oldest_due_age):>8} ")
    line.append(f"{depth.failed!s:>8}", style="red" if depth.failed.value else "")
    line.append(f"  {state:<9}", style=style)
    if room:
        line.append(f" {bar(depth.due.value, most, room)}", style="bright_blue")
    return line


def workers(overview: "Overview", width: int) -> list[Text]:
    """Return the workers with their jobs and health."""
    if not overview.workers:
        return [Text("no workers; start one: tenure worker module:app", style="dim")]
    name = min(40, max(12, width - 50))
    head = f"{'worker':<{name}} {'state':<9} {'jobs':>11}  {'seen':>6}  queues"
    return [
        Text(head, style="dim"),
        *(_worker(worker, name, width) for worker in overview.workers),
    ]


def _worker(worker: "WorkerRow", name: int, width: int) -> Text:
    from tenure.admin import live

    state, style = str(worker.state), ""
    if not live([worker]):
        state, style = "stale", "red"
    elif worker.drain_requested or state == "draining":
        state, style = "draining", "yellow"
    shown = Text(safe(f"{worker.name} {worker.host}"))
    shown.truncate(name, overflow="ellipsis", pad=True)
    jobs = f"{bar(worker.running, worker.slots, 5)} {worker.running}/{worker.slots}"
    shown.append(f" {state:<9}", style=style)
    shown.append(f" {jobs:>11}  {brief(worker.heartbeat_age):>6}  {safe(','.join(worker.queues))}")
    shown.truncate(width, overflow="ellipsis")
    return shown


def completions(overview: "Overview", width: int) -> list[Text]:
    """Return the last completed jobs."""
    if not overview.completions:
        return [Text("nothing since yesterday", style="dim")]
    task = max(12, min(60, width - 52))
    lines = [
        Text(f"{'job':>10} {'task':<{task}} {'ran':>8} {'attempt':>7} {'ago':>8}  queue", "dim")
    ]
    for each in overview.completions:
        shown = Text(safe(each.task))
        shown.truncate(task, overflow="ellipsis", pad=True)
        line = Text(f"{each.job_id:>10} ").append_text(shown)
        ago = brief(overview.now - each.ended_at)
        line.append(f" {brief(each.ran):>8} {each.attempt:>7} {ago:>8}  {safe(each.queue)}")
        lines.append(line)
    return lines


# A heading, and lines, the first of which may be a table header.
Section = tuple[str, Sequence[Text]]
# At this width and above, workers appear next to queues and completions.
_WIDE = 140
_LEAST = 3
_KEYS = "q quit · s sort · j k choose · p pause or resume · o open a job"


def frame(
    overview: "Overview | None",
    view: "TopState",
    *,
    width: int,
    height: int | None,
    state: str = "",
) -> list[Text]:
    """Return the lines of a frame. Without a height, return all of them.

    `state` describes how fresh the data is.
    """
    title = _title(overview, width, state)
    foot = _foot(view, width) if height is not None else []
    if overview is None:
        body = [_cut(Text(line), width) for line in wrap(safe(state), width)]
        return _fitted([title, *body], foot, height)
    head = [title, *(_cut(line, width) for line in numbers(overview, width))]
    if view.opened is not None:
        body = [_cut(Text(safe(line)), width) for line in view.opened]
        return _fitted([*head, _rule("job", width), *body], foot, height)
    room = None if height is None else height - len(head) - len(foot)
    return _fitted([*head, *_body(overview, view, width, room)], foot, height)


def _body(overview: "Overview", view: "TopState", width: int, room: int | None) -> list[Text]:
    attention = ("needs attention", attention_lines(overview, width))
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
    return [*top, *(_side_by_side(one, other, left) for one, other in columns)]


def _work(overview: "Overview", view: "TopState", width: int) -> list[Section]:
    return [
        (f"queues by {view.order}", queues(overview, view, width)),
        ("recently completed", completions(overview, width)),
    ]


def _workers(overview: "Overview", width: int) -> Section:
    return "workers", workers(overview, width)


def _side_by_side(one: Text, other: Text, width: int) -> Text:
    line = one.copy()
    line.truncate(width, pad=True)
    return line.append("  ").append_text(other)


def _column(sections: Sequence[Section], width: int, room: int | None) -> list[Text]:
    """Return the sections stacked vertically, with their headings."""
    rows = _shared([len(lines) for _, lines in sections], room)
    return [
        _cut(line, width)
        for (name, lines), most in zip(sections, rows, strict=True)
        for line in (_rule(name, width), *_shown(lines, most))
    ]


def _shared(wanted: Sequence[int], room: int | None) -> list[int]:
    """Return how many lines each section gets. The first sections share what's left over."""
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
    """Return at most `most` lines, always including the first and the selected one.

    The last line shows how many were left out.
    """
    if len(lines) <= most:
        return list(lines)
    room = max(0, most - 2)
    chosen = next((n for n, line in enumerate(lines) if line.plain.startswith(CHOSEN)), 0)
    first = max(1, chosen - room + 1)
    kept = [lines[0], *lines[first : first + room]]
    return [*kept, Text(f"… and {len(lines) - len(kept)} more", style="dim")][:most]


def _fitted(lines: list[Text], foot: list[Text], height: int | None) -> list[Text]:
    """Return the lines with the footer at the bottom of the terminal."""
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


def _foot(view: "TopState", width: int) -> list[Text]:
    text = view.prompt or view.message or ("any key: back" if view.opened is not None else _KEYS)
    return [_cut(Text(safe(text), style="reverse"), width)]


def _rule(name: str, width: int) -> Text:
    line = Text(f"── {name} ", style="dim")
    return line.append("─" * max(0, width - line.cell_len))


def _cut(line: Text, width: int) -> Text:
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis")
    return line
