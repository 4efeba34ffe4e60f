"""What code declares: schedules brought to what a program says at its start, in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tenure._model.audit import By
from tenure._model.schedule import SCHEDULES_CHANGED, Declaring, NewSchedule, ScheduleRow
from tenure._rules import payload, timing
from tenure._rules.declaring import as_stored, definition, plan
from tenure._store.port import Op, Rows, atomically
from tenure._store.postgres.ticking import Ticking, schedule_row
from tenure.errors import InvalidValue

_TRIES = 5


class Definitions(Ticking):
    """The part of the store that writes the definitions of schedules."""

    def declare(
        self, program: str, version: Sequence[int], schedules: Sequence[NewSchedule]
    ) -> Op[Declaring]:
        """Bring a program's schedules to what its code says, in one transaction.

        Of several that start at once, the first to insert a schedule makes the others begin
        again, and find it there.
        """
        wanted = {schedule.name: as_stored(schedule) for schedule in schedules}
        for _ in range(_TRIES):
            done = yield from atomically(self._declare(program, tuple(version), wanted))
            if done is not None:
                return done
        raise InvalidValue(
            f"the schedules of {program!r} change all the time; is somebody deleting them?"
        )

    def _declare(
        self, program: str, version: tuple[int, ...], wanted: Mapping[str, NewSchedule]
    ) -> Op[Declaring | None]:
        """None: another program's start has made one of them meanwhile."""
        rows = yield self._query("lock_schedules", names=sorted(wanted), program=program)
        now = rows[0]["now"] if rows else (yield from self._now())
        found = {row["name"]: schedule_row(row) for row in rows}
        planned = plan(program, version, wanted, found)
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
            return None
        if planned.retired:
            yield self._query("retire", names=list(planned.retired), program_version=list(version))
        same = [
            name
            for name, row in found.items()
            if name in wanted and name not in (*planned.changed, *planned.newer)
            if row.program_version != version
        ]
        if same:
            yield self._query("vouch", names=same, program_version=list(version))
        by = By(program, "code", f"version {'.'.join(map(str, version))}" if version else None)
        for name in (*planned.made, *planned.changed):
            yield from self._noted_schedule(by, "declare", found.get(name), wanted[name])
        dropped = " ".join(filter(None, (by.reason, "no longer declares it")))
        for name in planned.retired:
            yield from self._noted_schedule(
                replace(by, reason=dropped), "retire", found[name], None
            )
        return planned

    def _now(self) -> Op[datetime]:
        [row] = yield self._query("next_tick", floor=None)
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

    def _noted_schedule(
        self, by: By, action: str, before: ScheduleRow | None, after: NewSchedule | None
    ) -> Op[None]:
        name = after.name if after is not None else before.name if before is not None else ""
        yield from self._audit(
            by,
            f"schedule.{action}",
            [f"schedule:{name}"],
            before=None if before is None else definition(before),
            after=None if after is None else definition(after),
        )
