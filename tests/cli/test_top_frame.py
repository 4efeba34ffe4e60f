"""Frames fit whatever terminal they are drawn on; keys come to what they say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from rich.cells import cell_len

from tenure._model.diagnostics import Level
from tenure._model.ids import JobId, WorkerId
from tenure.cli.top.frame import bar, brief, frame
from tenure.cli.top.state import OpenJob, PauseOrResume, QueueOrder, Quit, TopState
from tenure.cli.top.terminal import decoded
from tenure.types import (
    Alert,
    AlertCode,
    Completion,
    Count,
    Depth,
    Overview,
    OverviewCounts,
    QueueSummary,
    Target,
    TargetKind,
    WorkerRow,
    WorkerState,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MANY = Count(10_000, more=True)
ME = WorkerId(UUID(int=1))


def queue(name: str, due: int = 0, failed: int = 0, *, paused: bool = False) -> QueueSummary:
    depth = Depth(name, Count(due), MANY, MANY, MANY, Count(failed), timedelta(seconds=due))
    return QueueSummary(depth, None, paused, 0)


def overview(queues: Sequence[QueueSummary]) -> Overview:
    sentence = "Queue 郵便 has many due jobs\x1b[2J and no live worker. " * 3
    attention = [
        Alert(code, Level.PROBLEM, sentence, "tenure top", Target(TargetKind.QUEUE, "q"))
        for code in list(AlertCode)[:8]
    ]
    worker = WorkerRow(
        *(ME, "worker\n1", "host" * 30, 1, "1", "python", ["a"] * 40, 100, 7),
        *(WorkerState.ACTIVE, False, NOW, NOW, timedelta(seconds=3), None),
    )
    done = Completion(JobId(10**15), "q" * 60, "task" * 30, 3, ME, NOW, NOW)
    numbers = OverviewCounts(
        *(MANY, MANY, MANY, MANY, MANY, MANY, MANY, timedelta(days=400), MANY, MANY, 50, 60)
    )
    return Overview(NOW, "words", numbers, attention, 9, queues, [worker] * 60, [done] * 10)


FULL = overview([queue(f"{'郵便' * 20}-{n}", n, n) for n in range(40)])


@pytest.mark.parametrize("width", [20, 40, 80, 139, 140, 200, 400])
@pytest.mark.parametrize("height", [5, 10, 24, 50, 100, None])
def test_no_frame_is_larger_than_its_terminal(width: int, height: int | None) -> None:
    """Shows R35."""
    for opened in (None, ["a line of a job " * 40] * 100):
        view = TopState(opened=opened)
        lines = frame(FULL, view, width=width, height=height, state="away: " + "x" * 500)
        assert height is None or len(lines) == height
        assert max(cell_len(line.plain) for line in lines) <= width
        assert not any(sign in line.plain for line in lines for sign in "\x1b\n")


def test_before_the_first_answer_it_says_so() -> None:
    lines = frame(None, TopState(), width=80, height=24, state="looking…")
    assert lines[1].plain == "looking…"
    assert len(lines) == 24


def test_where_all_is_well_words_say_so() -> None:
    """Shows R35."""
    calm = replace(FULL, attention=[], more=0, words="All is well.", queues=[], completions=[])
    text = "\n".join(line.plain for line in frame(calm, TopState(), width=80, height=24))
    assert "All is well." in text
    assert "no queues yet" in text
    assert "nothing since yesterday" in text


def test_the_chosen_queue_is_always_to_be_seen() -> None:
    view = TopState()
    for _ in range(30):
        lines = frame(FULL, view, width=80, height=24)
        assert any(line.plain.startswith("> ") for line in lines)
        view.press("j")


def test_queues_are_sorted_by_each_order_in_turn() -> None:
    queues = [queue("a", due=1, failed=9), queue("b", due=5)]
    view = TopState()
    seen = []
    for _ in QueueOrder:
        seen.append((view.order, [each.name for each in view.sorted(queues)]))
        view.press("s")
    assert seen[0] == (QueueOrder.NAME, ["a", "b"])
    assert seen[1] == (QueueOrder.DUE, ["b", "a"])
    assert seen[4] == (QueueOrder.FAILED, ["a", "b"])
    assert view.order is QueueOrder.NAME


def test_a_queue_is_chosen_round_and_round() -> None:
    view = TopState()
    view.sorted([queue("a"), queue("b")])
    chosen = [view.chosen]
    for key in ("j", "down", "k", "up"):
        view.press(key)
        chosen.append(view.chosen)
    assert chosen == ["a", "b", "a", "b", "a"]
    view.sorted([])
    assert view.chosen is None
    assert view.press("p") is None
    assert view.prompted is None


def test_reason_is_typed_corrected_and_optional() -> None:
    view = TopState()
    view.sorted([queue("a"), queue("b", paused=True)])
    for key in ("p", "n", "p", "backspace", "o"):
        assert view.press(key) is None
    assert view.prompt == "pause a; reason: no█"
    assert view.press("enter") == PauseOrResume("a", pause=True, reason="no")
    view.press("j")
    view.press("p")
    assert view.press("enter") == PauseOrResume("b", pause=False, reason=None)
    view.press("p")
    view.press("escape")
    assert view.prompt is None


def test_a_job_is_opened_by_its_number_alone() -> None:
    view = TopState()
    for key in ("o", "x", "1", "2"):
        assert view.press(key) is None
    assert view.press("enter") == OpenJob(12)
    view.press("o")
    assert view.press("enter") is None
    view.opened = ["job"]
    assert view.press("x") is None
    assert frame(FULL, view, width=80, height=24)[-1].plain.startswith("q quit")
    assert view.press("q") == Quit()


@pytest.mark.parametrize(
    ("pressed", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A", ["up"]),
        (b"\x1bOB", ["down"]),
        (b"\x1b", ["escape"]),
        (b"ab\r", ["a", "b", "enter"]),
        (b"\x1b[Bj\x7f", ["down", "j", "backspace"]),
        (b"\x1b[15~q", ["q"]),
        (b"\x1bq", ["escape", "q"]),
        ("ü\n".encode(), ["ü", "enter"]),
        (b"", []),
    ],
)
def test_what_a_terminal_sends_is_read_as_keys(pressed: bytes, keys: list[str]) -> None:
    assert decoded(pressed) == keys


def test_times_and_bars_are_brief() -> None:
    lengths = [None, 0.004, 2.34, 59, 75, 3600, 7300, 90_000]
    spans = [None if each is None else timedelta(seconds=each) for each in lengths]
    assert [*map(brief, spans)] == ["-", "4ms", "2.3s", "59s", "1m15s", "1h", "2h1m", "1d1h"]
    assert (bar(0, 10, 4), bar(1, 100, 4), bar(10, 10, 4)) == ("····", "█···", "████")
    assert bar(1, 0, 3) == "█··"
