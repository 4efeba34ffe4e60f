"""The doctor: what is wrong, or could be better, with an installation, and what to do about it.

Each look is one short function in the room of its subject. No look counts an unbounded set.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from tenure._model.condition import Condition
from tenure._model.finding import Fault, Finding
from tenure._rules.attention import FIRED_WITHIN, RESCUED_WITHIN
from tenure._rules.standing import PASSED_OVER_FOR
from tenure.admin.doctor import server, tables, work
from tenure.admin.doctor.findings import Found, problem, run, warning
from tenure.admin.doctor.wakeups import notify_queue, redis, wakeups
from tenure.admin.faces import on_a_thread
from tenure.admin.schema import Schema
from tenure.errors import QueryFailed, StoreError

_NOT_ALLOWED = "42501"
# How many of a kind are named: the worst.
_MOST = 3


class Doctor(Schema):
    """The verb that examines an installation."""

    def doctor(self) -> Sequence[Finding]:
        """Examine the installation: the server and its durability, clocks, wakeups, rights, the
        schema and how it is kept, workers, queues and schedules. What cannot be reached or looked
        at is a finding, not an error."""
        return list(self._findings())

    async def adoctor(self) -> Sequence[Finding]:
        """The same in the async world, on a thread."""
        return await on_a_thread(self.doctor)

    def _findings(self) -> Found:
        try:
            yield from self._examined()
        except StoreError as error:
            yield problem(
                "database",
                Fault.UNREACHABLE,
                f"the database does not answer: {error}",
                "nothing can be enqueued, claimed or settled",
                "start the server, or mend the URL",
            )
        yield from redis(self._engine)

    def _examined(self) -> Found:
        # Once to be connected: the clocks are compared by the way there and back alone.
        self.perform(self._store.condition())
        began = datetime.now(UTC)
        condition = self.perform(self._store.condition())
        took = datetime.now(UTC) - began
        yield from server.release(condition)
        yield from server.durability(condition)
        yield from server.clock(condition.now - (began + took / 2), took)
        full = list(notify_queue(self.perform(self._store.notify_queue())))
        yield from full or wakeups(self._engine)
        grants = self.perform(self._store.rights(condition.role))
        yield from tables.rights(grants, condition.role)
        found = list(self._looked("schema", self._schema))
        yield from found
        if any(each.fault in {*tables.BROKEN, Fault.SCHEMA_DIFFERS} for each in found):
            return
        for subject, look in (
            ("retention", lambda: tables.upkeep(self.perform(self._store.late_upkeep()))),
            ("vacuum", lambda: self._vacuum(condition)),
            ("horizon", lambda: tables.horizon(self.perform(self._store.holders(count=_MOST)))),
            ("workers", self._work),
            ("leases", self._leases),
            ("schedules", self._schedules),
        ):
            yield from self._looked(subject, look)

    def _looked(self, subject: str, look: Callable[[], Found]) -> Found:
        """What a look finds; that the database refused it, where it did."""
        try:
            yield from look()
        except QueryFailed as error:
            owner = f"examine it as the role that owns the schema {self._engine.schema}"
            yield warning(
                subject,
                Fault.NOT_LOOKED_AT,
                f"this could not be looked at: {error}",
                "what is wrong with it is not found",
                owner if error.sqlstate == _NOT_ALLOWED else "run it again; see the server's log",
            )

    def _schema(self) -> Found:
        status = self.schema()
        if not status.fits:
            yield problem(
                "schema",
                Fault.SCHEMA_DIFFERS,
                str(status.problem),
                "this release cannot work with it",
                run("tenure db migrate"),
            )
            return
        yield from tables.drift(self.perform(self._store.drift()), status.version)

    def _vacuum(self, condition: Condition) -> Found:
        unkept = self.perform(self._store.unkept())
        yield from tables.vacuum(condition, unkept, self._engine.schema)

    def _work(self) -> Found:
        known = self.perform(self._store.workers())
        yield from work.workers(known)
        names = self.perform(self._store.queue_names())
        yield from work.queues(known, names)
        locked = self._store.locked(names, PASSED_OVER_FOR, count=_MOST)
        yield from work.locked(self.perform(locked))

    def _leases(self) -> Found:
        yield from work.leases(self.perform(self._store.overdue(RESCUED_WITHIN, count=_MOST)))

    def _schedules(self) -> Found:
        late = self.perform(self._store.late_schedules(FIRED_WITHIN, count=_MOST))
        there = self.perform(self._store.schedules(count=1))
        yield from work.schedules(late, any_there=bool(there))
