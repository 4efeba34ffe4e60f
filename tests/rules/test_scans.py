"""Scans from zero: how what lies below a floor all the same is found, queue by queue."""

from __future__ import annotations

from tenure._model.job import PRIORITIES
from tenure._rules.claiming import LaneTracker
from tests.rules.simulated import Row, Table, answer, at, below_floors, floors

NOW = 60_000


def at_rest(*queues: str) -> LaneTracker:
    """A book whose lanes were all exhausted, so that every floor is two seconds ago."""
    book = LaneTracker(queues)
    book.record_claim(book.next_lanes(), answer([], now=NOW), wanted=1)
    return book


def scan(book: LaneTracker, table: Table, *, wanted: int) -> int:
    """One scan from zero; answers with how many it took."""
    request = book.next_scan_lanes()
    claims = table.claim(request, wanted=wanted, now=NOW)
    book.record_scan(request, claims, wanted=wanted)
    return len(claims.jobs)


def test_a_book_without_floors_has_nothing_to_scan() -> None:
    assert LaneTracker(["a"]).next_scan_lanes() == []


def test_scans_take_one_queue_after_the_other() -> None:
    book = at_rest("a", "b", "c")
    scanned = [{lane.queue for lane in book.next_scan_lanes()} for _ in range(4)]
    assert scanned == [{"a"}, {"b"}, {"c"}, {"a"}]


def test_a_scan_reads_every_lane_of_its_queue_that_has_a_floor_from_zero() -> None:
    lanes = at_rest("a").next_scan_lanes()
    assert [lane.priority for lane in lanes] == list(PRIORITIES)
    assert all(lane.floor is None for lane in lanes)


def test_a_lane_without_a_floor_needs_no_scan() -> None:
    book, table = LaneTracker(["a"]), Table()
    table.add(1_000, priority=7)
    request = book.next_lanes()
    book.record_claim(request, table.claim(request, wanted=1, now=NOW), wanted=1)
    assert [lane.priority for lane in book.next_scan_lanes()] == [7]


def test_a_scan_that_finds_a_straggler_leaves_the_floors_where_they_are() -> None:
    book, table = at_rest("a"), Table()
    before = floors(book)
    table.add(1_000)
    assert below_floors(book, table)
    assert scan(book, table, wanted=10) == 1
    assert floors(book) == before


def test_asking_for_a_scan_leaves_the_floors_where_they_are() -> None:
    book = at_rest("a", "b")
    before = floors(book)
    book.next_scan_lanes()
    assert floors(book) == before


def test_a_backlog_below_a_floor_is_left_to_ordinary_claims_after_one_scan() -> None:
    """A large transaction that committed late."""
    book, table = at_rest("a"), Table()
    for number in range(30):
        table.add(1_000 + number)
    assert scan(book, table, wanted=10) == 10
    assert below_floors(book, table) == []
    request = book.next_lanes(woken=True)
    assert len(table.claim(request, wanted=100, now=NOW).jobs) == 20


def test_a_full_scan_moves_no_floor_of_a_lane_that_it_took_nothing_from() -> None:
    book, table = at_rest("a", "b"), Table()
    before = floors(book)
    for number in range(10):
        table.add(1_000 + number, priority=9)
    scan(book, table, wanted=10)
    moved = {place for place, floor in floors(book).items() if floor != before[place]}
    assert moved == {("a", 9)}


def test_what_was_given_back_and_what_is_above_the_floor_say_nothing_in_a_scan() -> None:
    book = at_rest("a")
    before = floors(book)
    request = book.next_scan_lanes()
    rows = [Row(1, 1_000, returned=True), Row(2, NOW - 1_000)]
    book.record_scan(request, answer(rows, now=NOW), wanted=2)
    assert floors(book) == before


def test_a_floor_that_went_back_rises_again() -> None:
    book, table = at_rest("a"), Table()
    before = floors(book)["a", 5]
    for number in range(10):
        table.add(1_000 + number)
    scan(book, table, wanted=10)
    book.record_claim(book.next_lanes(woken=True), answer([], now=NOW), wanted=1)
    assert floors(book)["a", 5] == before


def test_a_claim_that_was_on_its_way_when_a_scan_put_a_floor_back_does_not_raise_it() -> None:
    """Both go by connections of their own. What the claim found lies above the backlog."""
    book, table = at_rest("a"), Table()
    request = book.next_lanes()
    for number in range(30):
        table.add(1_000 + number)
    scan(book, table, wanted=10)
    back = floors(book)["a", 5]
    book.record_claim(request, answer([], now=NOW + 10_000), wanted=1)

    assert floors(book)["a", 5] == back
    assert len(table.claim(book.next_lanes(woken=True), wanted=100, now=NOW).jobs) == 20


def test_lane_is_untried_until_a_claim_includes_it() -> None:
    book = LaneTracker(["a"])
    request = book.next_lanes()
    assert book.has_untried(request)
    book.record_claim(request, answer([], now=NOW), wanted=1)
    assert not book.has_untried(request)
    book.add(["b"])
    assert book.has_untried(book.next_lanes(woken=True))


def test_lanes_that_were_skipped_begin_a_minute_ago_and_are_scanned_from_zero() -> None:
    book, table = LaneTracker(["a"]), Table()
    later = NOW + 120_000
    old, new = table.add(1_000), table.add(later - 1_000)
    request = book.next_lanes()
    book.skip(request, at(later))
    assert book.has_skipped
    assert not book.has_untried(request)

    request = book.next_lanes(woken=True)
    claims = table.claim(request, wanted=10, now=later)
    book.record_claim(request, claims, wanted=10)
    assert [job.job.id for job in claims.jobs] == [new.id]

    request = book.next_scan_lanes()
    assert all(lane.floor is None for lane in request)
    claims = table.claim(request, wanted=10, now=later)
    book.record_scan(request, claims, wanted=10)
    assert [job.job.id for job in claims.jobs] == [old.id]
    assert not book.has_skipped


def test_skipped_queues_are_scanned_before_all_others() -> None:
    book = at_rest("a", "b", "c")
    later = at(NOW + 120_000)
    book.skip([lane for lane in book.next_lanes(woken=True) if lane.queue == "b"], later)
    assert [{lane.queue for lane in book.next_scan_lanes()} for _ in range(3)] == [{"b"}] * 3


def test_a_full_scan_of_skipped_lanes_leaves_the_rest_to_claims() -> None:
    """What it did not come to stays skipped."""
    book, table = LaneTracker(["a"]), Table()
    later = NOW + 120_000
    for number in range(30):
        table.add(1_000 + number, priority=9)
    lowest = table.add(1_000, priority=0)
    book.skip(book.next_lanes(), at(later))
    request = book.next_scan_lanes()
    book.record_scan(request, table.claim(request, wanted=10, now=later), wanted=10)
    assert book.has_skipped

    claims = table.claim(book.next_lanes(woken=True), wanted=100, now=later)
    assert len(claims.jobs) == 20
    request = book.next_scan_lanes()
    claims = table.claim(request, wanted=10, now=later)
    book.record_scan(request, claims, wanted=10)
    assert [job.job.id for job in claims.jobs] == [lowest.id]
    assert not book.has_skipped


def test_a_floor_above_a_minute_ago_is_left_where_it_is() -> None:
    book = at_rest("a")
    before = floors(book)
    book.skip(book.next_lanes(woken=True), at(NOW + 1))
    assert floors(book) == before
    assert not book.has_skipped
