"""What code declares: schedules brought to what a program says at its start, in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tenure._model.audit import By
from tenure._model.schedule import SCHEDULES_CHANGED, Declaring, NewSchedule, ScheduleRow
from tenure._rules import payload, timing
from tenure._rules.declaring import Plan, as_stored, definition, plan
from tenure._store.port import Op, Rows, atomically
from tenure._store.postgres.literals import Jsonb
from tenure._store.postgres.ticking import Ticking, schedule_row
from tenure.errors import InvalidValue

_TRIES = 5


class _Overtaken(Exception):
    """Another start, or an operator, changed what this one had compared."""


class Definitions(Ticking):
    """The part of the store that writes the definitions of schedules."""

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[Declaring]:
        """Bring a program's schedules to what its code says, in one transaction.

        Compared without a lock, because mostly nothing differs and firing must go on; what does
        is compared again under its lock. If others were faster, all begins again.
        """
        wanted = {schedule.name: as_stored(schedule) for schedule in schedules}
        release = tuple(version)
        for _ in range(_TRIES):
            rows = yield self._query("declared", names=list(wanted), program=program)
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
        planned: Plan,
    ) -> Op[None]:
        rows = yield self._query("lock_schedules", names=sorted(planned.locked))
        now = rows[0]["now"] if rows else (yield from self._now())
        found = {row["name"]: schedule_row(row) for row in rows}
        concerned = {name: wanted[name] for name in planned.touched if name in wanted}
        if replace(plan(program, version, concerned, found), newer=planned.newer) != planned:
            raise _Overtaken
        for name in (*planned.changed, *planned.retired):
            found[name] = yield from self._account(found[name], now)
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
            yield self._query("retire", names=list(planned.retired), program_version=list(version))
        if planned.vouched:
            yield self._query("vouch", names=list(planned.vouched), program_version=list(version))
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
                zones=[s.timing.zone for s in schedules],
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
                missed_mosts=[s.policy.missed_most for s in schedules],
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
