"""The doctor: checks an installation and explains how to fix each problem.

Each check is a short function in the module for its topic. Checks never count an unbounded number
of rows.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from tenure._model.diagnostics import Finding, FindingCode, ServerInfo
from tenure._rules.alerts import FIRED_WITHIN, RESCUED_WITHIN
from tenure._rules.explain import PASSED_OVER_FOR
from tenure._rules.liveness import unknown_to_all
from tenure.admin._commands import CommandGroup, on_a_thread
from tenure.admin.doctor import schema, server, tokens, workload
from tenure.admin.doctor.findings import Findings, problem, run, warning
from tenure.admin.doctor.security import security
from tenure.admin.doctor.server import notify_queue, redis, wakeups
from tenure.admin.schema import Schema
from tenure.admin.stats import waiting_tasks
from tenure.errors import QueryFailed, StoreError

_NOT_ALLOWED = "42501"
# How many of each kind to name, worst first.
_MOST = 3
_MOST_TOKENS = 1000


class Doctor(CommandGroup):
    """The command that checks an installation."""

    def doctor(self) -> Sequence[Finding]:
        """Check the installation and return findings.

        It checks the server and its durability, clocks, wakeups, privileges, security, the schema
        and its maintenance, workers, queues, leases, schedules and access tokens. A check that
        can't run is reported as a finding, not raised as an error.
        """
        return list(self._findings())

    async def adoctor(self) -> Sequence[Finding]:
        """Run `doctor` on a thread."""
        return await on_a_thread(self.doctor)

    def _findings(self) -> Findings:
        try:
            yield from self._checks()
        except StoreError as error:
            yield problem(
                "database",
                FindingCode.UNREACHABLE,
                f"the database does not answer: {error}",
                "no job can be enqueued or run",
                "start the server, or fix the database URL",
            )
        yield from redis(self._engine)

    def _checks(self) -> Findings:
        # Connect first, so the round trip that compares the clocks doesn't include connecting.
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
        yield from schema.excess(self._run(self._store.inspection.excess_rights()))
        settings = self._run(self._store.inspection.role_settings())
        yield from schema.role_settings(settings, condition.database)
        yield from security(condition)
        findings = list(self._checked("schema", self._schema))
        yield from findings
        if any(each.fault in {*schema.BROKEN, FindingCode.SCHEMA_DIFFERS} for each in findings):
            return
        for subject, check in (
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
            ("tokens", self._tokens),
        ):
            yield from self._checked(subject, check)

    def _checked(self, subject: str, check: Callable[[], Findings]) -> Findings:
        """Run a check. If the database rejects a query, report that as the finding."""
        try:
            yield from check()
        except QueryFailed as error:
            owner = f"run tenure doctor as the role that owns schema {self._engine.schema}"
            yield warning(
                subject,
                FindingCode.NOT_LOOKED_AT,
                f"this check could not run: {error}",
                "problems that it would find are not reported",
                owner
                if error.sqlstate == _NOT_ALLOWED
                else "run tenure doctor again, and check the log of PostgreSQL",
            )

    def _schema(self) -> Findings:
        status = Schema(self._engine, runner=self._runner).status()
        if not status.fits:
            yield problem(
                "schema",
                FindingCode.SCHEMA_DIFFERS,
                str(status.problem),
                "this release cannot use it",
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
        unknown = self._run(waiting_tasks(self._store, unknown_to_all(known)))
        yield from workload.queues(known, names, unknown)
        yield from workload.notices(known, self._run(self._store.notices.list()))
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

    def _tokens(self) -> Findings:
        try:
            active = self._run(self._store.tokens.list(active=True, count=_MOST_TOKENS))
        except QueryFailed as error:
            if error.sqlstate == _NOT_ALLOWED:
                return  # Workers and producers may not read tokens, and don't need to.
            raise
        now = self._run(self._store.inspection.server_info()).now
        yield from tokens.lifetimes(active, now, most=_MOST)
