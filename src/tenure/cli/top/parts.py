"""The parts of a frame: numbers and bars, what needs attention, queues, workers, completions."""

from typing import TYPE_CHECKING

from rich.text import Text

from tenure.cli.top.words import bar, brief
from tenure.cli.words import safe

if TYPE_CHECKING:
    from tenure.admin import Count, Overview, QueueFigures, WorkerRow
    from tenure.cli.top.view import View

CHOSEN = "> "
_LEVELS = {"problem": ("!", "bold red"), "warning": ("·", "yellow")}
# Each state has a sign of its own: colour alone would say nothing where there is none.
_STATES = (
    ("due", "█", "bright_blue"),
    ("running", "▓", "blue"),
    ("later", "▒", "bright_black"),
    ("held", "░", "magenta"),
    ("failed", "×", "red"),
)


def numbers(overview: "Overview", width: int) -> list[Text]:
    """The seven numbers, and a bar of what there is by its state."""
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


def attention(overview: "Overview", width: int) -> list[Text]:
    """What needs attention, each with its command where there is room; in words if nothing does."""
    if not overview.attention:
        return [Text(safe(overview.words), style="green")]
    lines = []
    for each in overview.attention:
        sign, style = _LEVELS[each.level]
        line = Text(f"{sign} {safe(each.sentence)}", style=style)
        if line.cell_len + len(each.command) + 4 <= width:
            line.append(f"  → {safe(each.command)}", style="dim")
        lines.append(line)
    if overview.left_out:
        lines.append(Text(f"  and {overview.left_out} more: tenure doctor", style="dim"))
    return lines


def queues(overview: "Overview", view: "View", width: int) -> list[Text]:
    """Each queue with its counts and a bar, the chosen one marked."""
    found = view.sorted(overview.queues)
    if not found:
        return [Text("none is known yet", style="dim")]
    name = min(24, max(8, width - 62))
    room = max(0, min(30, width - name - 54))
    most = max((queue.depth.due.value for queue in found), default=0)
    counts = " ".join(f"{label:>8}" for label in ("due", "running", "oldest", "failed"))
    lines = [Text(f"  {'queue':<{name}} {counts}  state", style="dim")]
    lines += [_queue(queue, view, name, room, most) for queue in found]
    return lines


def _queue(queue: "QueueFigures", view: "View", name: int, room: int, most: int) -> Text:
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
    """Each worker with its jobs and its health."""
    if not overview.workers:
        return [Text("none is there; run: tenure worker module:app", style="dim")]
    name = min(40, max(12, width - 50))
    head = f"{'worker':<{name}} {'state':<9} {'jobs':>11}  {'beat':>6}  queues"
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
    shown.append(f" {jobs:>11}  {brief(worker.beat_age):>6}  {safe(','.join(worker.queues))}")
    shown.truncate(width, overflow="ellipsis")
    return shown


def completions(overview: "Overview", width: int) -> list[Text]:
    """What was completed last: how long ago, how long it ran, by which attempt."""
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
