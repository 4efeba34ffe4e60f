"""Schedules: define, declare, pause, list."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tenure._model.audit import By
from tenure._model.ids import Json
from tenure._model.job import EnqueueResult
from tenure._model.schedule import (
    SCHEDULES_CHANGED,
    DeclareResult,
    NewSchedule,
    PolicyChange,
    ScheduleRow,
)
from tenure._rules import payload, timing
from tenure._rules.schedules import DeclarationPlan, as_stored, definition, plan
from tenure._rules.serialization import dump as plain
from tenure._store.postgres.jobs import JobQueries
from tenure._store.postgres.statements import QueryBase
from tenure._store.postgres.ticks import TickQueries, schedule_row
from tenure._store.steps import Op, Rows, atomic, atomically
from tenure.errors import InvalidValue

_TRIES = 5
# Repeated clicks and requests arrive sooner than this.
_RUN_KEY_FOR = timedelta(days=1)


class _Overtaken(Exception):
    """Another program or an operator has changed the schedules in the meantime."""


@dataclass(eq=False)
class ScheduleQueries(QueryBase):
    jobs: JobQueries
    ticks: TickQueries

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[DeclareResult]:
        """Sync a program's schedules with what its code declares, in one transaction.

        The first comparison takes no locks, because usually nothing has changed and schedules must
        keep firing. If something has changed, the schedules are locked and compared again. If
        another process was faster, we start over.
        """
        wanted = {schedule.name: as_stored(schedule) for schedule in schedules}
        release = tuple(version)
        for _ in range(_TRIES):
            rows = yield self._query("declared_schedules", names=list(wanted), program=program)
            planned = plan(program, release, wanted, {r["name"]: schedule_row(r) for r in rows})
            try:
                if planned.touched:
                    yield from atomically(self._declare(program, release, wanted, planned))
            except _Overtaken:
                continue
            return planned.answer
        raise InvalidValue(
            f"the schedules of {program!r} keep changing; check for a process that deletes them"
        )

    def _declare(
        self,
        program: str,
        version: tuple[int, ...],
        wanted: Mapping[str, NewSchedule],
        planned: DeclarationPlan,
    ) -> Op[None]:
        rows = yield self._query("lock_schedules", names=sorted(planned.locked))
        now = rows[0]["now"] if rows else (yield from self._now())
        current = {row["name"]: schedule_row(row) for row in rows}
        concerned = {name: wanted[name] for name in planned.touched if name in wanted}
        if replace(plan(program, version, concerned, current), newer=planned.newer) != planned:
            raise _Overtaken
        for name in (*planned.changed, *planned.retired):
            current[name] = yield from self.ticks.account(current[name], now)
        written = yield from self._write(
            [wanted[name] for name in (*planned.made, *planned.changed)],
            {name: current[name].version for name in planned.changed},
            now,
            program=program,
            version=version,
        )
        if len(written) < len(planned.made) + len(planned.changed):
            raise _Overtaken
        if planned.retired:
            yield self._query(
                "retire_schedules", names=list(planned.retired), program_version=list(version)
            )
        if planned.confirmed:
            yield self._query(
                "confirm_schedules", names=list(planned.confirmed), program_version=list(version)
            )
        by = By(program, "code", f"version {'.'.join(map(str, version))}" if version else None)
        declared = [(n, current.get(n), wanted[n]) for n in (*planned.made, *planned.changed)]
        yield from self._noted_schedules(by, "declare", declared)
        dropped = " ".join(filter(None, (by.reason, "no longer declares it")))
        retired = [(name, current[name], None) for name in planned.retired]
        yield from self._noted_schedules(replace(by, reason=dropped), "retire", retired)

    def _now(self) -> Op[datetime]:
        [row] = yield self._query("next_tick", floor=None, unread=[])
        now: datetime = row["now"]
        return now

    def _write(
        self,
        schedules: Sequence[NewSchedule],
        versions: Mapping[str, int],
        now: datetime,
        *,
        program: str | None = None,
        version: Iterable[int] = (),
    ) -> Op[Rows]:
        """Write definitions, either new or replacing these versions.

        They take effect immediately.
        """
        if not schedules:
            return []
        return (
            yield self._query(
                "write_schedules",
                names=[s.name for s in schedules],
                versions=[versions.get(s.name) for s in schedules],
                crons=[s.timing.cron for s in schedules],
                everys=[s.timing.every for s in schedules],
                ats=[s.timing.at for s in schedules],
                timezones=[s.timing.zone for s in schedules],
                tasks=[s.job.task for s in schedules],
                queues=[s.job.queue for s in schedules],
                args=[payload.encode(s.job.args) for s in schedules],
                priorities=[s.job.priority for s in schedules],
                max_attempts=[s.job.max_attempts for s in schedules],
                max_losses=[s.job.max_losses for s in schedules],
                leases=[s.job.lease for s in schedules],
                targets=[s.job.target for s in schedules],
                metas=[payload.encode(s.job.meta) if s.job.meta else None for s in schedules],
                missed=[s.policy.missed for s in schedules],
                missed_withins=[s.policy.missed_within for s in schedules],
                missed_limits=[s.policy.missed_limit for s in schedules],
                overlaps=[s.policy.overlap for s in schedules],
                jitters=[s.policy.jitter for s in schedules],
                program=program,
                program_version=list(version),
                next_ats=[timing.following(s.timing, now) for s in schedules],
                **self._changed_wakeup(),
            )
        )

    def _changed_wakeup(self) -> dict[str, object]:
        """Return the parameters that notify schedulers of a change."""
        return {"channel": self.channel, "wake": [SCHEDULES_CHANGED]}

    def _noted_schedules(
        self,
        by: By,
        action: str,
        changes: Sequence[tuple[str, ScheduleRow | None, NewSchedule | None]],
    ) -> Op[None]:
        """Audit definitions that were written or removed, before and after."""
        yield from self._audit_changes(
            by,
            f"schedule.{action}",
            [
                (f"schedule:{name}", before and definition(before), after and definition(after))
                for name, before, after in changes
            ],
        )

    def create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Create a schedule at run time. Raise InvalidValue if the name is taken."""
        return atomically(self._create(as_stored(schedule), by))

    def _create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        rows = yield from self._write([schedule], {}, (yield from self._now()))
        if not rows:
            raise InvalidValue(
                f"schedule {schedule.name!r} already exists; update it, or choose another name"
            )
        yield from self._noted_schedules(by, "create", [(schedule.name, None, schedule)])
        return schedule_row(rows[0])

    def update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Change a schedule that was created at run time.

        Ticks that are due under the old definition fire first.
        """
        return atomically(self._update(as_stored(schedule), by))

    def _update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        current, now = yield from self.ticks.locked(schedule.name)
        if current.program is not None:
            raise InvalidValue(
                f"{current.program} declares the schedule {current.name!r} in its code, so only "
                "missed runs, jitter and pauses can be set here; change it in the code"
            )
        before = yield from self.ticks.account(current, now)
        rows = yield from self._write([schedule], {before.name: before.version}, now)
        yield from self._noted_schedules(by, "update", [(schedule.name, before, schedule)])
        return schedule_row(rows[0])

    @atomic
    def set_policy(self, name: str, change: PolicyChange, by: By) -> Op[ScheduleRow]:
        """Replace an operator's overrides.

        They also apply to ticks that are due but haven't been handled yet.
        """
        before, _ = yield from self.ticks.locked(name)
        return (
            yield from self._steer("set_policy", before, replace(before, set_policy=change), by)
        )

    @atomic
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]:
        """Skip ticks until a given time or until resumed, and record each one as paused."""
        before, now = yield from self.ticks.locked(name)
        paused = replace(
            before,
            paused_at=now,
            paused_until=until,
            paused_by=by.actor,
            paused_reason=by.reason,
        )
        return (yield from self._steer("pause", before, paused, by))

    @atomic
    def resume(self, name: str, by: By) -> Op[ScheduleRow]:
        """Resume firing a paused schedule, starting with the next tick."""
        current, now = yield from self.ticks.locked(name)
        # Ticks that became due during the pause are recorded now. They create no jobs.
        before = yield from self.ticks.account(current, now)
        resumed = replace(
            before, paused_at=None, paused_until=None, paused_by=None, paused_reason=None
        )
        return (yield from self._steer("resume", before, resumed, by))

    def _steer(
        self, action: str, before: ScheduleRow, wanted: ScheduleRow, by: By
    ) -> Op[ScheduleRow]:
        rows = yield self._query(
            "set_schedule_state",
            name=wanted.name,
            set_missed=wanted.set_policy.missed,
            set_missed_within=wanted.set_policy.missed_within,
            set_missed_limit=wanted.set_policy.missed_limit,
            set_jitter=wanted.set_policy.jitter,
            paused_at=wanted.paused_at,
            paused_until=wanted.paused_until,
            paused_by=wanted.paused_by,
            paused_reason=wanted.paused_reason,
            **self._changed_wakeup(),
        )
        after = schedule_row(rows[0])
        yield from self._audit(
            by,
            f"schedule.{action}",
            [f"schedule:{after.name}"],
            before=_steering(before),
            after=_steering(after),
        )
        return after

    @atomic
    def delete(self, name: str, by: By) -> Op[ScheduleRow]:
        """Delete a schedule that was created at run time or is retired.

        Its ticks and jobs are kept.
        """
        current, _ = yield from self.ticks.locked(name)
        if current.program is not None and current.retired_at is None:
            raise InvalidValue(
                f"{current.program} declares the schedule {name!r} in its code, and its next start "
                "would create it again; remove it there, or pause it"
            )
        yield self._query("delete_schedule", name=name)
        yield from self._noted_schedules(by, "delete", [(name, current, None)])
        return current

    @atomic
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue a schedule's job now.

        Repeating the call with the same key doesn't create a second job until a day after the first
        one ends.
        """
        schedule, _ = yield from self.ticks.locked(name)
        job = replace(
            schedule.job,
            meta={**schedule.job.meta, "schedule": name},
            key=None if key is None else f"run:{name}:{key}",
            key_for=None if key is None else _RUN_KEY_FOR,
        )
        [answer] = yield from self.jobs.enqueue([job])
        if answer.created:
            yield from self._audit(by, "schedule.run", [f"schedule:{name}", f"job:{answer.id}"])
        return answer

    def get(self, name: str, *, lock: bool = False) -> Op[ScheduleRow | None]:
        """Return the schedule with this name, or None. With `lock`, lock its row for changes."""
        if lock:
            rows = yield self._query("lock_schedules", names=[name])
        else:
            rows = yield self._query("schedules", name=name, after="", count=1, granted=None)
        return schedule_row(rows[0]) if rows else None

    def list(
        self, *, after: str = "", count: int = 100, granted: Sequence[str] | None = None
    ) -> Op[Sequence[ScheduleRow]]:
        rows = yield self._query("schedules", name=None, after=after, count=count, granted=granted)
        return [schedule_row(row) for row in rows]


def _steering(row: ScheduleRow) -> dict[str, Json]:
    """Return an operator's overrides as JSON for the audit."""
    parts: dict[str, Any] = {
        **asdict(row.set_policy),
        "paused_at": row.paused_at,
        "paused_until": row.paused_until,
        "paused_by": row.paused_by,
        "paused_reason": row.paused_reason,
    }
    result: dict[str, Json] = plain({k: v for k, v in parts.items() if v is not None})
    return result
