"""Where a claim looks and in which order: priorities, turns, empty lanes, scans from zero."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure._model.job import PRIORITIES
from tenure._model.queue import Lane
from tenure._rules.claiming import SCAN_AT_LEAST, LaneTracker, scan_delay
from tests.rules.simulated import Row, Table, answer, floors

FULL = 10


def exhaust(book: LaneTracker, *rows: Row, now: int = 60_000) -> None:
    """One claim that found these rows and nothing else."""
    book.record_claim(book.next_lanes(woken=True), answer(rows, now=now), wanted=FULL)


def queues_requested(lanes: list[Lane]) -> set[str]:
    return {lane.queue for lane in lanes}


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4))
def test_a_more_urgent_priority_always_comes_first(queues: list[str]) -> None:
    """Shows R10."""
    book = LaneTracker(queues)
    for _ in range(5):
        priorities = [lane.priority for lane in book.next_lanes()]
        assert priorities == sorted(priorities, reverse=True)


def test_the_first_claim_asks_for_every_lane_once() -> None:
    request = LaneTracker(["a", "b", "a"]).next_lanes()
    assert len(request) == 2 * len(PRIORITIES)
    assert len(set(request)) == len(request)
    assert all(lane.floor is None for lane in request)


def test_queues_take_turns_within_a_priority() -> None:
    book = LaneTracker(["a", "b", "c"])
    orders = []
    for _ in range(4):
        fresh = [lane.queue for lane in book.next_lanes() if lane.priority == 5]
        orders.append("".join(fresh))
    assert orders == ["abc", "bca", "cab", "abc"]


def test_two_busy_queues_of_one_priority_get_the_same() -> None:
    book, table = LaneTracker(["a", "b"]), Table()
    for number in range(400):
        table.add(number, queue="ab"[number % 2])
    taken = {"a": 0, "b": 0}
    for _ in range(10):
        request = book.next_lanes()
        claims = table.claim(request, wanted=FULL, now=1_000)
        book.record_claim(request, claims, wanted=FULL)
        for job in claims.jobs:
            taken[job.job.queue] += 1
    assert taken == {"a": 50, "b": 50}


def test_empty_lanes_are_included_in_every_fourth_claim() -> None:
    book = LaneTracker(["a", "b"])
    request = book.next_lanes()
    book.record_claim(request, answer([Row(1, 59_000, "a")], now=60_000), wanted=FULL)
    later = [len(queues_requested(book.next_lanes())) for _ in range(8)]
    assert later == [1, 1, 1, 2, 1, 1, 1, 2]


def test_empty_lanes_are_included_after_a_wakeup() -> None:
    book = LaneTracker(["a", "b"])
    exhaust(book)
    assert book.next_lanes() == []
    assert queues_requested(book.next_lanes(woken=True)) == {"a", "b"}


def test_a_lane_that_gave_something_again_is_no_longer_empty() -> None:
    book = LaneTracker(["a"])
    exhaust(book)
    exhaust(book, Row(1, 59_000, "a", 3))
    assert {lane.priority for lane in book.next_lanes()} == {3}


def test_a_lane_that_was_empty_stays_left_out_while_claims_are_filled_by_another() -> None:
    """A claim that was filled elsewhere says nothing of a lane that was empty."""
    book = LaneTracker(["a"])
    exhaust(book, Row(1, 59_000, "a", 5))
    full = [Row(number, 59_000, "a", 5) for number in range(2, 2 + FULL)]
    book.record_claim(book.next_lanes(), answer(full, now=60_001), wanted=FULL)
    assert {lane.priority for lane in book.next_lanes()} == {5}


@pytest.mark.parametrize(
    ("unread", "not_empty"), [(["a"], {"a"}), (["a", "b"], {"a", "b"}), (["*"], {"a", "b"})]
)
def test_a_queue_that_was_not_read_is_not_taken_for_empty(
    unread: list[str], not_empty: set[str]
) -> None:
    book = LaneTracker(["a", "b"])
    book.record_claim(book.next_lanes(), answer([], now=60_000, unread=unread), wanted=FULL)
    assert queues_requested(book.next_lanes()) == not_empty
    assert all(floors(book)[queue, 5] is None for queue in not_empty)


def test_a_book_of_no_queue_asks_for_nothing() -> None:
    book = LaneTracker([])
    assert book.next_lanes() == []
    exhaust(book)
    assert book.next_scan_lanes() == []


def test_a_lane_of_another_book_is_ignored() -> None:
    book = LaneTracker(["a"])
    book.record_claim([Lane("b", 5)], answer([Row(1, 0, "b")], now=60_000), wanted=FULL)
    assert queues_requested(book.next_lanes()) == {"a"}


@pytest.mark.parametrize(
    ("took_ms", "processes", "wait_ms"),
    [(0, 1, 200), (1, 1, 200), (10, 1, 200), (11, 1, 220), (10, 50, 10_000), (10, 0, 200)],
)
def test_the_next_scan_waits_for_this_ones_share(
    took_ms: int, processes: int, wait_ms: int
) -> None:
    took = timedelta(milliseconds=took_ms)
    assert scan_delay(took, processes=processes) == timedelta(milliseconds=wait_ms)


@given(st.timedeltas(timedelta(0), timedelta(hours=1)), st.integers(1, 500))
def test_scans_of_all_processes_together_take_a_twentieth_of_the_time_at_most(
    took: timedelta, processes: int
) -> None:
    wait = scan_delay(took, processes=processes)
    assert wait >= SCAN_AT_LEAST
    assert processes * took <= wait / 20 + timedelta(microseconds=processes)
