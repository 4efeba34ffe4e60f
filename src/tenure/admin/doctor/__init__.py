"""The doctor: what is wrong, or could be better, with an installation, and what to do about it.

Each look is one short function in the room of its subject. No look counts an unbounded set.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from tenure._model.diagnostics import Finding, FindingCode, ServerInfo
from tenure._rules.alerts import FIRED_WITHIN, RESCUED_WITHIN
from tenure._rules.explain import PASSED_OVER_FOR
from tenure.admin._commands import CommandGroup, on_a_thread
from tenure.admin.doctor import schema, server, workload
from tenure.admin.doctor.findings import Findings, problem, run, warning
from tenure.admin.doctor.server import notify_queue, redis, wakeups
from tenure.admin.schema import Schema
from tenure.errors import QueryFailed, StoreError

_NOT_ALLOWED = "42501"
# How many of a kind are named: the worst.
_MOST = 3


class Doctor(CommandGroup):
    """The verb that examines an installation."""

    def doctor(self) -> Sequence[Finding]:
        """Examine the installation: the server and its durability, clocks, wakeups, rights, the
        schema and how it is kept, workers, queues and schedules. What cannot be reached or looked
        at is a finding, not an error."""
        return list(self._findings())

    async def adoctor(self) -> Sequence[Finding]:
        """The same in the async world, on a thread."""
        return await on_a_thread(self.doctor)

    def _findings(self) -> Findings:
        try:
            yield from self._examined()
        except StoreError as error:
            yield problem(
                "database",
                FindingCode.UNREACHABLE,
                f"the database does not answer: {error}",
                "nothing can be enqueued, claimed or settled",
                "start the server, or mend the URL",
            )
        yield from redis(self._engine)

    def _examined(self) -> Findings:
        # Once to be connected: the clocks are compared by the way there and back alone.
        self._run(self._store.inspection.server_info())
        began = datetime.now(UTC)
        condition = self._run(self._store.inspection.server_info())
        took = datetime.now(UTC) - began
        yield from server.release(condition)
        yield from server.durability(condition)
        yield from server.clock(condition.now - (began + took / 2), took)
        full = list(notify_queue(self._run(self._store.inspection.notify_queue())))
        yield from full or wakeups(self._engine)
        grants = self._run(self._store.inspection.rights(condition.role))
        yield from schema.rights(grants, condition.role)
        found = list(self._looked("schema", self._schema))
        yield from found
        if any(each.fault in {*schema.BROKEN, FindingCode.SCHEMA_DIFFERS} for each in found):
            return
        for subject, look in (
            (
                "retention",
                lambda: schema.upkeep(self._run(self._store.inspection.overdue_maintenance())),
            ),
            ("vacuum", lambda: self._vacuum(condition)),
            (
                "horizon",
                lambda: schema.horizon(self._run(self._store.overview.holders(count=_MOST))),
            ),
            ("workers", self._work),
            ("leases", self._leases),
            ("schedules", self._schedules),
        ):
            yield from self._looked(subject, look)

    def _looked(self, subject: str, look: Callable[[], Findings]) -> Findings:
        """What a look finds; that the database refused it, where it did."""
        try:
            yield from look()
        except QueryFailed as error:
            owner = f"examine it as the role that owns the schema {self._engine.schema}"
            yield warning(
                subject,
                FindingCode.NOT_LOOKED_AT,
                f"this could not be looked at: {error}",
                "what is wrong with it is not found",
                owner if error.sqlstate == _NOT_ALLOWED else "run it again; see the server's log",
            )

    def _schema(self) -> Findings:
        status = Schema(self._engine, runner=self._runner).status()
        if not status.fits:
            yield problem(
                "schema",
                FindingCode.SCHEMA_DIFFERS,
                str(status.problem),
                "this release cannot work with it",
                run("tenure db migrate"),
            )
            return
        yield from schema.drift(self._run(self._store.inspection.schema_drift()), status.version)

    def _vacuum(self, condition: ServerInfo) -> Findings:
        unkept = self._run(self._store.inspection.vacuum_issues())
        yield from schema.vacuum(condition, unkept, self._engine.schema)

    def _work(self) -> Findings:
        known = self._run(self._store.workers.list())
        yield from workload.workers(known)
        names = self._run(self._store.leases.queue_names())
        yield from workload.queues(known, names)
        locked = self._store.inspection.locked(names, PASSED_OVER_FOR, count=_MOST)
        yield from workload.locked(self._run(locked))

    def _leases(self) -> Findings:
        yield from workload.leases(
            self._run(self._store.leases.overdue(RESCUED_WITHIN, count=_MOST))
        )

    def _schedules(self) -> Findings:
        late = self._run(self._store.overview.late_schedules(FIRED_WITHIN, count=_MOST))
        there = self._run(self._store.schedules.list(count=1))
        yield from workload.schedules(late, any_there=bool(there))
