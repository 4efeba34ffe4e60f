"""A small table that answers claims as the store's statement does. The oracle for lanes.

No locks and no snapshots: a row is there once it was added. Time is in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.job import JobRow, State
from tenure._model.lease import ClaimedJob, ClaimResult, Lease
from tenure._model.queue import Floor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenure._model.queue import Lane
    from tenure._rules.claiming import LaneTracker

_BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)
_HOLDER = WorkerId(UUID(int=1))


def at(milliseconds: int) -> datetime:
    """The instant this long after the simulation's beginning."""
    return _BEGINNING + timedelta(milliseconds=milliseconds)


@dataclass(frozen=True, slots=True)
class Row:
    """A queued job; `suspect` if it comes alone, `returned` keeps it out of its lane's order."""

    id: int
    run_at: int
    queue: str = "a"
    priority: int = 5
    returned: bool = False
    suspect: bool = False

    @property
    def place(self) -> Floor:
        return Floor(at(self.run_at), JobId(self.id))


def claimed(row: Row) -> ClaimedJob:
    """The row as a claim answers with it."""
    job = JobRow(
        id=JobId(row.id),
        state=State.RUNNING,
        queue=row.queue,
        task="task",
        args={},
        priority=row.priority,
        attempt=1,
        max_attempts=3,
        losses=0,
        token=Token(1),
        run_at=at(row.run_at),
        created_at=at(row.run_at),
        suspect=row.suspect,
    )
    lease = Lease(job.id, job.token, _HOLDER, timedelta(seconds=30))
    return ClaimedJob(job, lease, returned=row.returned)


def answer(
    rows: Sequence[Row], *, now: int, found: int | None = None, unread: Sequence[str] = ()
) -> ClaimResult:
    """The answer to a claim that took exactly these rows."""
    count = len(rows) if found is None else found
    return ClaimResult([claimed(r) for r in rows], count, False, frozenset(unread), at(now))


@dataclass(slots=True)
class Table:
    """The queued rows, which queues are paused, and how many rows limited ones still give."""

    rows: list[Row] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    rooms: dict[str, int] = field(default_factory=dict)
    _ids: int = 0

    def add(
        self,
        run_at: int,
        *,
        queue: str = "a",
        priority: int = 5,
        returned: bool = False,
        suspect: bool = False,
    ) -> Row:
        self._ids += 1
        row = Row(self._ids, run_at, queue, priority, returned, suspect)
        self.rows.append(row)
        return row

    def claim(self, lanes: Sequence[Lane], *, wanted: int, now: int) -> ClaimResult:
        """Take due rows by priority: what was given back, then the lanes, each above its floor.

        A suspect comes alone, and is passed over behind others.
        """
        found: list[Row] = []
        rooms = dict(self.rooms)
        probes = [(lane, returned) for returned in (True, False) for lane in lanes]
        for lane, returned in sorted(probes, key=lambda probe: -probe[0].priority):
            if lane.queue not in self.paused:
                room = min(wanted - len(found), rooms.get(lane.queue, wanted))
                taken = self._due(lane, now, returned=returned)[: max(room, 0)]
                found += taken
                if lane.queue in rooms:
                    rooms[lane.queue] -= len(taken)
        suspects_first = bool(found) and found[0].suspect
        taken = found[:1] if suspects_first else [r for r in found if not r.suspect]
        self.rows = [r for r in self.rows if r not in taken]
        unread = sorted(self.paused | self.rooms.keys())
        return answer(taken, now=now, found=len(found), unread=unread)

    def _due(self, lane: Lane, now: int, *, returned: bool) -> list[Row]:
        rows = [
            row
            for row in self.rows
            if (row.queue, row.priority, row.returned) == (lane.queue, lane.priority, returned)
            and row.run_at <= now
            and (lane.floor is None or returned or row.place > lane.floor)
        ]
        return sorted(rows, key=lambda row: row.place)


def floors(book: LaneTracker) -> Mapping[tuple[str, int], Floor | None]:
    """Every lane's floor, seen from outside: in what a claim that was woken asks for."""
    return {(lane.queue, lane.priority): lane.floor for lane in book.next_lanes(woken=True)}


def below_floors(book: LaneTracker, table: Table) -> list[Row]:
    """The rows that a claim can no longer see, because their lane's floor has passed them."""
    known = floors(book)
    hidden = []
    for row in table.rows:
        floor = known[row.queue, row.priority]
        if not row.returned and floor is not None and row.place <= floor:
            hidden.append(row)
    return hidden
