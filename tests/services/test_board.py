"""The board: leases in memory that a parent reads while its child writes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.store import A
from tenure._model.ids import JobId, Token
from tenure._model.lease import Lease
from tenure._runtime.lease_board import NEVER, LeaseBoard, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

LEASE = Lease(JobId(7), Token(1 << 40), A, timedelta(seconds=30))

BEGIN = """
import sys, time
from datetime import timedelta
from uuid import UUID
from tenure._model.lease import Lease
from tenure._runtime.lease_board import LeaseBoard, Phase
board = LeaseBoard(int(sys.argv[1]), places=3)
until = time.monotonic() + 1.5
"""


@pytest.fixture
def fd() -> Iterator[int]:
    made = LeaseBoard.make(places=3)
    yield made
    os.close(made)


def put(board: LeaseBoard, stop_at: float = 100.0) -> int:
    return board.put(LEASE, stop_at=stop_at, attempt=2, limit=5)


def test_a_lease_that_was_put_is_read_as_it_was(fd: int) -> None:
    child, parent = LeaseBoard(fd, places=3), LeaseBoard(fd, places=3)
    put(child, stop_at=123.5)

    [entry] = parent.entries(A)

    assert entry.lease == LEASE
    assert (entry.phase, entry.stop_at, entry.attempt, entry.limit) == (
        Phase.UNSTARTED,
        123.5,
        2,
        5,
    )


def test_what_has_not_started_and_what_has_ended_need_not_be_stopped(fd: int) -> None:
    board = LeaseBoard(fd, places=3)
    place = put(board)
    seen = []
    for phase in (Phase.UNSTARTED, Phase.STARTED, Phase.TIMED_OUT, Phase.ENDED):
        board.mark(place, phase)
        seen.append(board.summary())

    assert [look[:2] for look in seen] == [
        (NEVER, False),
        (100.0, False),
        (100.0, True),
        (NEVER, False),
    ]


def test_shortest_lease_is_known_in_every_phase(
    fd: int,
) -> None:
    """What a frozen child holds may all have ended."""
    child, parent = LeaseBoard(fd, places=3), LeaseBoard(fd, places=3)
    brief = Lease(JobId(8), Token(1 << 40), A, timedelta(seconds=6))
    places = [put(child), child.put(brief, stop_at=5.0, attempt=1, limit=1)]
    child.mark(places[1], Phase.ENDED)
    assert parent.summary() == (NEVER, False, 6.0)

    for place in places:
        child.clear(place)
    assert parent.summary() == (NEVER, False, NEVER)


def test_a_place_says_since_when_it_is_started_apart_or_ended(fd: int) -> None:
    """A timeout keeps the instant of the start; a place that is given again has none."""
    child, parent = LeaseBoard(fd, places=3), LeaseBoard(fd, places=3)
    place = put(child)
    assert [entry.since for entry in parent.entries(A)] == [0.0]
    for phase, now in ((Phase.STARTED, 7.5), (Phase.IN_PROCESS, 8.5)):
        child.begin(place, phase, now)
        [entry] = parent.entries(A)
        assert (entry.phase, entry.since) == (phase, now)
        child.time_out(place, timedelta(0))
        assert [each.since for each in parent.entries(A)] == [now]
    child.end(place, 9.5, begun=True)
    assert [(each.phase, each.since) for each in parent.entries(A)] == [(Phase.ENDED, 9.5)]
    child.clear(place)
    put(child)
    assert [entry.since for entry in parent.entries(A)] == [0.0]


def test_beats_are_read_as_they_were_written_and_touch_no_place(fd: int) -> None:
    child, parent = LeaseBoard(fd, places=3), LeaseBoard(fd, places=3)
    put(child)
    assert parent.heartbeats == (0.0, 0.0)

    child.record_loop_heartbeat(17.5)
    child.record_service_heartbeat(18.25)

    assert parent.heartbeats == (17.5, 18.25)
    assert [entry.lease for entry in parent.entries(A)] == [LEASE]


def test_what_is_timed_out_says_how_long_its_job_waits(fd: int) -> None:
    """In whole words beside the others: nothing else of the place changes. Shows R14."""
    child, parent = LeaseBoard(fd, places=3), LeaseBoard(fd, places=3)
    child.mark(put(child), Phase.STARTED)
    child.time_out(put(child), timedelta(seconds=7.5))

    [other, entry] = parent.entries(A)
    assert (other.phase, other.retry_after) == (Phase.STARTED, timedelta(0))
    assert (entry.phase, entry.retry_after) == (Phase.TIMED_OUT, timedelta(seconds=7.5))
    assert (entry.lease, entry.stop_at, entry.attempt, entry.limit) == (LEASE, 100.0, 2, 5)


def test_the_earliest_of_those_that_run_counts(fd: int) -> None:
    board = LeaseBoard(fd, places=3)
    places = [put(board, stop_at) for stop_at in (30.0, 10.0, 20.0)]
    for place in (places[0], places[2]):
        board.mark(place, Phase.STARTED)
    assert board.summary() == (20.0, False, 30.0)

    board.extend(places[2], 40.0)
    assert board.summary() == (30.0, False, 30.0)


def test_a_place_that_was_cleared_can_be_used_again_and_no_more_than_there_are(fd: int) -> None:
    board = LeaseBoard(fd, places=3)
    places = [put(board) for _ in range(3)]
    assert board.capacity == 0
    with pytest.raises(IndexError):
        put(board)

    board.clear(places[1])
    assert (board.capacity, len(list(board.entries(A)))) == (1, 2)
    assert put(board) == places[1]


def elsewhere(fd: int, act: str) -> subprocess.Popen[bytes]:
    """Do this in a process of its own, to which only the descriptor is known."""
    return subprocess.Popen([sys.executable, "-c", f"{BEGIN}{act}", str(fd)], pass_fds=[fd])


def test_another_process_sees_what_was_written_through_the_descriptor_alone(fd: int) -> None:
    act = (
        "lease = Lease(7, 1 << 40, UUID(int=0xA), timedelta(seconds=30))\n"
        "place = board.put(lease, stop_at=50.0, attempt=1, limit=3)\n"
        "board.mark(place, Phase.STARTED)"
    )
    assert elsewhere(fd, act).wait(10) == 0

    parent = LeaseBoard(fd, places=3)
    assert parent.summary() == (50.0, False, 30.0)
    assert [entry.lease for entry in parent.entries(A)] == [LEASE]


def test_a_deadline_is_never_read_half_written(fd: int) -> None:
    """The parent ends a child whose deadline it reads as past: what it reads must have been
    written, by whatever renewal is under way. Old and new lie on both sides of a whole byte."""
    board = LeaseBoard(fd, places=3)
    board.mark(put(board, 131071.9), Phase.STARTED)
    act = (
        "while time.monotonic() < until:\n"
        "    for _ in range(1000):\n"
        "        board.extend(0, 131103.5)\n"
        "        board.extend(0, 131071.9)"
    )
    seen: set[tuple[float, bool]] = set()
    with elsewhere(fd, act) as child:
        while child.poll() is None:
            seen.update(board.summary()[:2] for _ in range(100))

    assert seen == {(131071.9, False), (131103.5, False)}


def test_a_place_in_use_is_never_read_as_free(fd: int) -> None:
    """A handler that starts while its child dies must not vanish from the board."""
    board = LeaseBoard(fd, places=3)
    put(board)
    act = (
        "while time.monotonic() < until:\n"
        "    for _ in range(1000):\n"
        "        board.mark(0, Phase.STARTED)\n"
        "        board.mark(0, Phase.ENDED)"
    )
    counts: set[int] = set()
    with elsewhere(fd, act) as child:
        while child.poll() is None:
            counts.update(len(list(board.entries(A))) for _ in range(100))

    assert counts == {1}
