"""Fire due ticks, and backfill past ones. Schedule definitions are in `schedules`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tenure._model.ids import JobId
from tenure._model.job import NewJob
from tenure._model.schedule import (
    FireResult,
    Missed,
    Overlap,
    Policy,
    PolicyChange,
    ScheduleRow,
    ScheduleState,
    Tick,
    TickReason,
    TickRow,
    Timing,
)
from tenure._rules import schedules as rules
from tenure._rules.schedules import unknown
from tenure._store.postgres.rows import tick_row
from tenure._store.postgres.statements import QueryBase
from tenure._store.steps import Op, Row, atomically
from tenure.errors import InvalidValue

# Ticks per transaction: few enough to finish quickly.
_TICKS = 1000


class TickQueries(QueryBase):
    def fire(
        self, *, count: int = 100, floor: datetime | None = None, unread: Collection[str] = ()
    ) -> Op[FireResult]:
        """Fire due ticks for up to `count` schedules, in one transaction.

        Any number of processes may do this concurrently, and locked schedules are skipped. Ticks
        that were due before `floor` are left to a pass without a floor. Schedules that this process
        can't read, and those in `unread`, are left to other processes, which may know their time
        zone.
        """
        left = sorted(unread)
        [row] = yield self._query("next_tick", floor=floor, unread=left)
        next_at, now = row["next_at"], row["now"]
        if next_at is None or next_at > now:
            return FireResult(ticks=0, jobs=0, next_at=next_at, now=now)
        unreadable: dict[str, str] = {}
        ticks, jobs = yield from atomically(self._fire_due(count, floor, left, unreadable))
        return FireResult(
            ticks=ticks, jobs=jobs, next_at=next_at, now=now, skipped_queues=unreadable
        )

    def _fire_due(
        self, count: int, floor: datetime | None, left: Sequence[str], unread: dict[str, str]
    ) -> Op[tuple[int, int]]:
        rows = yield self._query("lock_due_schedules", count=count, floor=floor, unread=left)
        if not rows:
            return 0, 0
        return (yield from self._fire([schedule_row(r) for r in rows], rows[0]["now"], unread))

    def _fire(
        self, schedules: Sequence[ScheduleRow], now: datetime, unread: dict[str, str] | None = None
    ) -> Op[tuple[int, int]]:
        """Fire locked schedules, up to one statement's limit.

        Add schedules that can't be read to `unread`.
        """
        live = yield from self._live(schedules)
        decided: list[tuple[ScheduleRow, rules.TickDecisions]] = []
        room = _TICKS
        for schedule in schedules:
            if room > 0:
                try:
                    verdict = rules.decide_ticks(
                        schedule, now=now, live=schedule.last_job_id in live, most=room
                    )
                except InvalidValue as error:
                    if unread is None:
                        raise
                    unread[schedule.name] = str(error)
                    continue
                decided.append((schedule, verdict))
                room -= len(verdict.ticks)
        ticks = [
            _TickRecord(s, tick, v.next_at, tick is v.ticks[-1])
            for s, v in decided
            for tick in v.ticks
        ]
        if not ticks:
            return 0, 0
        [row] = yield self._query(
            "fire",
            **_arrays(ticks),
            again=False,
            channel=self.channel,
            wake=sorted({each.schedule.job.queue for each in ticks if each.tick.run_at}),
        )
        return row["ticks"], row["jobs"]

    def _live(self, schedules: Sequence[ScheduleRow]) -> Op[set[JobId]]:
        """Return which of the last jobs haven't ended, using a snapshot newer than the locks."""
        ids = [
            s.last_job_id
            for s in schedules
            if s.policy.overlap is Overlap.SKIP and s.last_job_id is not None
        ]
        if not ids:
            return set()
        rows = yield self._query("live_jobs", ids=ids)
        return {JobId(row["id"]) for row in rows}

    def account(self, schedule: ScheduleRow, now: datetime) -> Op[ScheduleRow]:
        """Fire all due ticks of a locked schedule before its definition changes."""
        while schedule.next_at is not None and schedule.next_at <= now:
            yield from self._fire([schedule], now)
            [row] = yield self._query("lock_schedules", names=[schedule.name])
            schedule = schedule_row(row)
        return schedule

    def backfill(
        self, name: str, fire_ats: Sequence[datetime]
    ) -> Op[Mapping[datetime, JobId] | None]:
        """Create the missing jobs for these past ticks.

        Return None if the schedule no longer exists.
        """
        rows = yield self._query("lock_schedules", names=[name])
        if not rows:
            return None
        schedule = schedule_row(rows[0])
        ticks = [Tick(fire_at=at, reason=TickReason.BACKFILL, run_at=at) for at in fire_ats]
        [row] = yield self._query(
            "fire",
            **_arrays([_TickRecord(schedule, tick) for tick in ticks]),
            again=True,
            channel=self.channel,
            wake=[schedule.job.queue],
        )
        made = zip(row["fired"] or (), row["made"] or (), strict=True)
        return {fire_at: JobId(job_id) for fire_at, job_id in made}

    def locked(self, name: str) -> Op[tuple[ScheduleRow, datetime]]:
        """Lock a schedule and return it with the current time.

        Raise InvalidValue if it doesn't exist.
        """
        rows = yield self._query("lock_schedules", names=[name])
        if not rows:
            raise unknown(name)
        return schedule_row(rows[0]), rows[0]["now"]

    def list(
        self, name: str, *, before: datetime | None = None, count: int = 50
    ) -> Op[Sequence[TickRow]]:
        """Return a schedule's recorded ticks, newest first, before an instant."""
        rows = yield self._query("ticks", schedule=name, before=before, count=count)
        return [tick_row(row) for row in rows]


@dataclass(frozen=True, slots=True)
class _TickRecord:
    """A tick to record; the last one advances the schedule."""

    schedule: ScheduleRow
    tick: Tick
    next_at: datetime | None = None
    last: bool = False


def _arrays(ticks: Sequence[_TickRecord]) -> dict[str, object]:
    return {
        "schedules": [each.schedule.name for each in ticks],
        "versions": [each.schedule.version for each in ticks],
        "fire_ats": [each.tick.fire_at for each in ticks],
        "reasons": [each.tick.reason for each in ticks],
        "run_ats": [each.tick.run_at for each in ticks],
        "lasts": [each.last for each in ticks],
        "next_ats": [each.next_at if each.last else None for each in ticks],
    }


def schedule_row(row: Row) -> ScheduleRow:
    """Return a schedule from its row, which includes the current time."""
    return ScheduleRow(
        name=row["name"],
        version=row["version"],
        timing=Timing(cron=row["cron"], every=row["every"], at=row["at"], zone=row["timezone"]),
        job=NewJob(
            row["task"],
            queue=row["queue"],
            args=row["args"],
            priority=row["priority"],
            max_attempts=row["max_attempts"],
            max_losses=row["max_losses"],
            lease=row["lease"],
            target=row["target"],
            meta=row["meta"] or {},
        ),
        policy=Policy(
            missed=Missed(row["missed"]),
            missed_within=row["missed_within"],
            missed_limit=row["missed_limit"],
            overlap=Overlap(row["overlap"]),
            jitter=row["jitter"],
        ),
        set_policy=PolicyChange(
            missed=None if row["set_missed"] is None else Missed(row["set_missed"]),
            missed_within=row["set_missed_within"],
            missed_limit=row["set_missed_limit"],
            jitter=row["set_jitter"],
        ),
        state=_state(row),
        program=row["program"],
        program_version=tuple(row["program_version"]),
        next_at=row["next_at"],
        last_at=row["last_at"],
        last_job_id=row["last_job_id"],
        paused_at=row["paused_at"],
        paused_until=row["paused_until"],
        paused_by=row["paused_by"],
        paused_reason=row["paused_reason"],
        retired_at=row["retired_at"],
        created_at=row["created_at"],
        changed_at=row["changed_at"],
    )


def _state(row: Row) -> ScheduleState:
    if row["retired_at"] is not None:
        return ScheduleState.RETIRED
    until = row["paused_until"]
    if row["paused_at"] is not None and (until is None or until > row["now"]):
        return ScheduleState.PAUSED
    return ScheduleState.DONE if row["next_at"] is None else ScheduleState.ACTIVE
