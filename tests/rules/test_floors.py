"""Floors: they save a claim from walking over what is gone, and hide nothing that is there."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure._model.ids import JobId
from tenure._model.queue import Floor
from tenure._rules.claiming import LAG_ROWS, LaneTracker
from tests.rules.simulated import Row, Table, answer, at, below_floors, floors

if TYPE_CHECKING:
    from tenure._model.lease import ClaimResult

QUEUES = ("a", "b")
waits = st.tuples(st.just("wait"), st.sampled_from([1, 700, 1_500, 2_500]))
adds = st.tuples(
    st.just("add"),
    st.sampled_from(QUEUES),
    st.sampled_from([4, 5]),
    st.sampled_from([-1_900, -1_000, 0, 0, 800, 2_200]),
    st.integers(1, 3),
    st.booleans(),
)
claims_of = st.tuples(st.just("claim"), st.integers(1, 4), st.booleans())
returns = st.tuples(st.just("return"), st.sampled_from(QUEUES), st.integers(0, 60_000))
pauses = st.tuples(st.just("pause"), st.sampled_from(QUEUES))
limits = st.tuples(st.just("limit"), st.sampled_from(QUEUES), st.none() | st.integers(0, 3))
# What is named three times is drawn more often.
steps = st.lists(
    st.sampled_from([adds, waits, claims_of] * 3 + [returns, pauses, limits]).flatmap(lambda s: s),
    min_size=3,
    max_size=25,
)


def claim(
    book: LaneTracker, table: Table, *, wanted: int, now: int, woken: bool = True
) -> ClaimResult:
    request = book.next_lanes(woken=woken)
    claims = table.claim(request, wanted=wanted, now=now)
    book.record_claim(request, claims, wanted=wanted)
    return claims


def play(script: list[tuple[Any, ...]], *, late: bool, suspects: bool) -> None:
    """Follow a script; after each step no row may be hidden below its lane's floor.

    Rows that are `late` became visible up to 2 s after their time, as an enqueue inside a
    longer transaction does.
    """
    book, table, now = LaneTracker(QUEUES), Table(), 100_000
    for step in script:
        match step:
            case ("wait", by):
                now += by
            case ("add", queue, priority, offset, count, is_suspect):
                run_at = now + (offset if late else max(offset, 0))
                for _ in range(count):
                    suspect = suspects and is_suspect
                    table.add(run_at, queue=queue, priority=priority, suspect=suspect)
            case ("return", queue, run_at):
                table.add(run_at, queue=queue, returned=True, suspect=suspects)
            case ("pause", queue):
                table.paused ^= {queue}
            case ("limit", queue, None):
                table.rooms.pop(queue, None)
            case ("limit", queue, room):
                table.rooms[queue] = room
            case ("claim", wanted, woken):
                claim(book, table, wanted=wanted, now=now, woken=woken)
            case _:
                raise AssertionError(step)
        assert below_floors(book, table) == []


@settings(max_examples=5 * settings().max_examples)
@given(steps)
def test_a_floor_hides_nothing_that_was_visible_at_its_time(script: list[tuple[Any, ...]]) -> None:
    play(script, late=False, suspects=False)


@settings(max_examples=5 * settings().max_examples)
@given(steps)
def test_a_floor_hides_nothing_that_became_visible_within_two_seconds(
    script: list[tuple[Any, ...]],
) -> None:
    play(script, late=True, suspects=False)


@settings(max_examples=5 * settings().max_examples)
@given(steps)
def test_a_floor_hides_nothing_that_a_suspect_left_behind(script: list[tuple[Any, ...]]) -> None:
    play(script, late=False, suspects=True)


def test_what_a_lone_suspect_left_in_its_lane_is_still_above_the_floor() -> None:
    book, table = LaneTracker(["a"]), Table()
    table.add(10_000, suspect=True)
    table.add(11_000)
    table.add(12_000)
    claims = claim(book, table, wanted=10, now=60_000)
    assert (len(claims.jobs), claims.found) == (1, 3)
    assert below_floors(book, table) == []
    assert len(claim(book, table, wanted=10, now=60_001).jobs) == 2


def test_a_suspect_that_was_passed_over_is_still_above_the_floor() -> None:
    book, table = LaneTracker(["a"]), Table()
    table.add(10_000)
    suspect = table.add(11_000, suspect=True)
    table.add(12_000)
    claim(book, table, wanted=3, now=60_000)
    assert table.rows == [suspect]
    assert below_floors(book, table) == []


def test_a_lane_that_a_claim_did_not_reach_keeps_its_floor() -> None:
    """A row became visible 1.5 s after its time; the lane was not read between."""
    book, table = LaneTracker(["a"]), Table()
    table.add(10_000)
    claim(book, table, wanted=1, now=10_200)
    table.add(9_000)
    table.add(12_500, priority=9)
    claim(book, table, wanted=1, now=13_000)
    assert below_floors(book, table) == []


def test_claim_filled_early_in_a_lane_keeps_the_other_floors() -> None:
    """Two rows became visible late, below what was claimed before; one of them is taken."""
    book, table = LaneTracker(["a"]), Table()
    table.add(9_000)
    claim(book, table, wanted=1, now=10_000)
    table.add(8_100)
    table.add(8_100)
    claim(book, table, wanted=1, now=10_700)
    assert len(table.rows) == 1
    assert below_floors(book, table) == []


def test_an_exhausted_claim_moves_every_floor_to_two_seconds_ago() -> None:
    book = LaneTracker(["a", "b"])
    claim(book, Table(), wanted=5, now=60_000)
    assert set(floors(book).values()) == {Floor(at(58_000), JobId(0))}


def test_a_claim_that_was_filled_moves_a_floor_no_further_than_what_it_took() -> None:
    book, table = LaneTracker(["a"]), Table()
    rows = [table.add(run_at) for run_at in range(0, 50_000, 1_000)]
    claim(book, table, wanted=10, now=60_000)
    assert floors(book)["a", 5] == rows[9].place
    assert floors(book)["a", 4] is None


def test_a_floor_is_never_within_two_seconds_of_now_while_few_rows_were_taken() -> None:
    book, table = LaneTracker(["a"]), Table()
    for run_at in range(59_000, 60_000, 10):
        table.add(run_at)
    claim(book, table, wanted=50, now=60_000)
    assert floors(book)["a", 5] == Floor(at(58_000), JobId(0))


def test_a_floor_lags_a_thousand_rows_behind_when_rows_are_taken_fast() -> None:
    book, table = LaneTracker(["a"]), Table()
    rows = [table.add(59_000 + number // 5) for number in range(3 * LAG_ROWS)]
    for taken in range(100, 2 * LAG_ROWS + 1, 100):
        claim(book, table, wanted=100, now=60_000)
        floor = floors(book)["a", 5]
        if taken <= LAG_ROWS:
            assert floor == Floor(at(58_000), JobId(0))
        else:
            assert floor == rows[taken - LAG_ROWS - 1].place


def test_what_was_given_back_never_moves_a_floor() -> None:
    book = LaneTracker(["a"])
    rows = [Row(number, 59_000, returned=True) for number in range(10)]
    book.record_claim(book.next_lanes(), answer(rows, now=60_000), wanted=10)
    assert set(floors(book).values()) == {None}


def test_a_queue_that_is_paused_or_limited_is_never_exhausted() -> None:
    book, table = LaneTracker(["a", "b"]), Table(paused={"a"}, rooms={"b": 1})
    table.add(1_000, queue="a")
    table.add(1_000, queue="b")
    left = table.add(1_500, queue="b")
    claim(book, table, wanted=10, now=60_000)
    assert floors(book)["a", 5] is None
    floor = floors(book)["b", 5]
    assert floor is not None
    assert floor < left.place


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 5)), max_size=30))
def test_a_floor_never_goes_back(waits: list[tuple[int, int]]) -> None:
    book, table, now = LaneTracker(["a"]), Table(), 10_000
    seen: list[Floor] = []
    for wait, wanted in waits:
        now += wait
        table.add(now)
        table.add(now + 100)
        claim(book, table, wanted=wanted, now=now)
        seen += [floor for floor in [floors(book)["a", 5]] if floor is not None]
    assert all(before <= after for before, after in pairwise(seen))
