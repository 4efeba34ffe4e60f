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
from tenure._store.postgres.statements import Jsonb, QueryBase
from tenure._store.postgres.ticks import TickQueries, schedule_row
from tenure._store.steps import Op, Rows, atomic, atomically
from tenure.errors import InvalidValue

_TRIES = 5
# A click that is repeated, or a request that is sent again, comes sooner.
_RUN_KEY_FOR = timedelta(days=1)


class _Overtaken(Exception):
    """Another start, or an operator, changed what this one had compared."""


@dataclass(eq=False)
class ScheduleQueries(QueryBase):
    """The part of the store that writes the definitions of schedules: for code, for operators."""

    jobs: JobQueries
    ticks: TickQueries

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[DeclareResult]:
        """Bring a program's schedules to what its code says, in one transaction.

        Compared without a lock, because mostly nothing differs and firing must go on; what does
        is compared again under its lock. If others were faster, all begins again.
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
            f"the schedules of {program!r} change all the time; is somebody deleting them?"
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
        found = {row["name"]: schedule_row(row) for row in rows}
        concerned = {name: wanted[name] for name in planned.touched if name in wanted}
        if replace(plan(program, version, concerned, found), newer=planned.newer) != planned:
            raise _Overtaken
        for name in (*planned.changed, *planned.retired):
            found[name] = yield from self.ticks.account(found[name], now)
        written = yield from self._write(
            [wanted[name] for name in (*planned.made, *planned.changed)],
            {name: found[name].version for name in planned.changed},
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
        declared = [(n, found.get(n), wanted[n]) for n in (*planned.made, *planned.changed)]
        yield from self._noted_schedules(by, "declare", declared)
        dropped = " ".join(filter(None, (by.reason, "no longer declares it")))
        retired = [(name, found[name], None) for name in planned.retired]
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
        """Write definitions: new, or in the place of these versions. They begin from now."""
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
        """The parameters of a statement by which schedulers hear that something changed."""
        return {"channel": self.channel, "wake": [SCHEDULES_CHANGED]}

    def _noted_schedules(
        self,
        by: By,
        action: str,
        changes: Sequence[tuple[str, ScheduleRow | None, NewSchedule | None]],
    ) -> Op[None]:
        """The audit of definitions that were written or taken away, each before and after."""
        if not changes:
            return
        yield self._query(
            "audit",
            actor=by.actor,
            source=by.source,
            action=f"schedule.{action}",
            targets=[f"schedule:{name}" for name, _, _ in changes],
            reason=by.reason,
            befores=[Jsonb(before and definition(before)) for _, before, _ in changes],
            afters=[Jsonb(after and definition(after)) for _, _, after in changes],
        )

    def create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Make a schedule at run time; InvalidValue if there is one of that name."""
        return atomically(self._create(as_stored(schedule), by))

    def _create(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        rows = yield from self._write([schedule], {}, (yield from self._now()))
        if not rows:
            raise InvalidValue(
                f"there is a schedule {schedule.name!r} already; update it, or give this one "
                "another name"
            )
        yield from self._noted_schedules(by, "create", [(schedule.name, None, schedule)])
        return schedule_row(rows[0])

    def update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        """Give a schedule that was made at run time another definition; ticks that are due are
        accounted for by the old one first. InvalidValue if code declares it."""
        return atomically(self._update(as_stored(schedule), by))

    def _update(self, schedule: NewSchedule, by: By) -> Op[ScheduleRow]:
        found, now = yield from self.ticks.locked(schedule.name)
        if found.program is not None:
            raise InvalidValue(
                f"{found.program} declares the schedule {found.name!r} in its code; change it "
                "there. Only missed runs, jitter and pauses can be set over it"
            )
        before = yield from self.ticks.account(found, now)
        rows = yield from self._write([schedule], {before.name: before.version}, now)
        yield from self._noted_schedules(by, "update", [(schedule.name, before, schedule)])
        return schedule_row(rows[0])

    @atomic
    def set_policy(self, name: str, change: PolicyChange, by: By) -> Op[ScheduleRow]:
        """Set what holds over a schedule's own policy, in the place of what was set before. Ticks
        that are due and not accounted for are judged by it."""
        before, _ = yield from self.ticks.locked(name)
        return (
            yield from self._steer("set_policy", before, replace(before, set_policy=change), by)
        )

    @atomic
    def pause(self, name: str, by: By, *, until: datetime | None = None) -> Op[ScheduleRow]:
        """Let ticks make no jobs, until then or until resumed; each is recorded as paused."""
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
        """Let a paused schedule's ticks make jobs again, from the next one on."""
        found, now = yield from self.ticks.locked(name)
        # What fell due in the pause and was not recorded yet, is; it is not made up for.
        before = yield from self.ticks.account(found, now)
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
        """Remove a schedule; its ticks and jobs stay. InvalidValue if code declares it and it is
        not retired."""
        found, _ = yield from self.ticks.locked(name)
        if found.program is not None and found.retired_at is None:
            raise InvalidValue(
                f"{found.program} declares the schedule {name!r} in its code, and its next start "
                "would make it again; take it out there, or pause it"
            )
        yield self._query("delete_schedule", name=name)
        yield from self._noted_schedules(by, "delete", [(name, found, None)])
        return found

    @atomic
    def run(self, name: str, by: By, *, key: str | None = None) -> Op[EnqueueResult]:
        """Enqueue a schedule's job now, beside its ticks; the same key makes it once, until a day
        after that job has ended."""
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
        """The schedule of this name, or None; locked, if it is to be changed from what it is."""
        if lock:
            rows = yield self._query("lock_schedules", names=[name])
        else:
            rows = yield self._query("schedules", name=name, after="", count=1)
        return schedule_row(rows[0]) if rows else None

    def list(self, *, after: str = "", count: int = 100) -> Op[Sequence[ScheduleRow]]:
        """Schedules by name, above a name."""
        rows = yield self._query("schedules", name=None, after=after, count=count)
        return [schedule_row(row) for row in rows]


def _steering(row: ScheduleRow) -> dict[str, Json]:
    """What operators have set over a schedule, as JSON for the audit."""
    parts: dict[str, Any] = {
        **asdict(row.set_policy),
        "paused_at": row.paused_at,
        "paused_until": row.paused_until,
        "paused_by": row.paused_by,
        "paused_reason": row.paused_reason,
    }
    said: dict[str, Json] = plain({k: v for k, v in parts.items() if v is not None})
    return said
