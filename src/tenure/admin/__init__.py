"""What an operator can see and do: one method per verb, sync, with an async twin for each.

A command, a route and a page are spellings of these methods. Every change takes who and why
(`By`), and is in the audit by its own transaction. What the methods take and give is here too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure import _wiring, sources
from tenure._model.access import Grant, Scope, TokenRow, TokenState
from tenure._model.answers import Cancelling, Deleting, Retried, Retrying, Upkept
from tenure._model.attempt import AttemptRow
from tenure._model.audit import AuditRow, By
from tenure._model.ending import Ending
from tenure._model.job import Enqueued, JobRow, State
from tenure._model.operation import (
    Changes,
    Filter,
    ItemOutcome,
    Membership,
    OperationItem,
    OperationKind,
    OperationRow,
    OperationState,
)
from tenure._model.queue import EVERY_QUEUE, QueueRow
from tenure._model.schedule import (
    Missed,
    Overlap,
    Policy,
    PolicyChange,
    ScheduleRow,
    ScheduleState,
    Shift,
    TickOutcome,
    TickReason,
    TickRow,
    Timing,
)
from tenure._model.standing import Standing, StandingCode
from tenure._model.stats import Count, Depth, FailedGroup, Spread, Stats, Tally
from tenure._model.worker import Presence, WorkerRow
from tenure._rules.access import allows, covers, visible
from tenure._rules.histograms import BOUNDS
from tenure._rules.redaction import Redactor
from tenure._rules.values import dump as plain
from tenure._store.engine import Engine
from tenure.admin.backfills import BackfillProgress
from tenure.admin.doctor import Doctor, Finding, Level
from tenure.admin.enqueuing import EnqueuedMany, JobRequest
from tenure.admin.installation import Installation, Setting
from tenure.admin.jobs import JobList, Jobs
from tenure.admin.operations import ItemList, Operations
from tenure.admin.previews import Run, preview_timing
from tenure.admin.schedules import Schedules
from tenure.admin.schema import SchemaStatus, roles, sql
from tenure.admin.stats import FailedGroups, Figures
from tenure.admin.tokens import CreatedToken, Tokens

__all__ = [
    "BOUNDS",
    "EVERY_QUEUE",
    "Admin",
    "AttemptRow",
    "AuditRow",
    "BackfillProgress",
    "By",
    "Cancelling",
    "Changes",
    "Count",
    "CreatedToken",
    "Deleting",
    "Depth",
    "Ending",
    "Enqueued",
    "EnqueuedMany",
    "FailedGroup",
    "FailedGroups",
    "Filter",
    "Finding",
    "Grant",
    "ItemList",
    "ItemOutcome",
    "JobList",
    "JobRequest",
    "JobRow",
    "Level",
    "Membership",
    "Missed",
    "OperationItem",
    "OperationKind",
    "OperationRow",
    "OperationState",
    "Operations",
    "Overlap",
    "Policy",
    "PolicyChange",
    "Presence",
    "QueueRow",
    "Redactor",
    "Retried",
    "Retrying",
    "Run",
    "ScheduleRow",
    "ScheduleState",
    "Schedules",
    "SchemaStatus",
    "Scope",
    "Setting",
    "Shift",
    "Spread",
    "Standing",
    "StandingCode",
    "State",
    "Stats",
    "Tally",
    "TickOutcome",
    "TickReason",
    "TickRow",
    "Timing",
    "TokenRow",
    "TokenState",
    "Tokens",
    "Upkept",
    "WorkerRow",
    "allows",
    "connect",
    "covers",
    "examine",
    "plain",
    "preview_timing",
    "roles",
    "sql",
    "visible",
]


class Admin(Jobs, Installation, Figures, Doctor):
    """The operator's verbs over one database."""

    @property
    def schedules(self) -> Schedules:
        """The verbs over schedules."""
        return Schedules(self._engine, runner=self._runner)

    @property
    def operations(self) -> Operations:
        """The verbs over operations: one action on many jobs."""
        return Operations(self._engine, runner=self._runner)

    @property
    def tokens(self) -> Tokens:
        """The verbs over access tokens."""
        return Tokens(self._engine, runner=self._runner)


@contextmanager
def connect(
    url: str | None = None, *, schema: str | None = None, check: bool = True
) -> Iterator[Admin]:
    """The verbs over one connection, made now: for a program that asks once and ends.

    Without `url` and `schema`, those that are configured. Refuses a schema that does not fit,
    unless told not to check. The async twins open connections of their own.
    """
    engine = _engine(url, schema)
    with engine.session() as session:
        if check:
            session.run(engine.check_schema())
        yield Admin(engine, runner=session)


def examine(url: str | None = None, *, schema: str | None = None) -> Sequence[Finding]:
    """The doctor's findings, for a program that asks once; a database that does not answer is one
    of them. Without `url` and `schema`, those that are configured."""
    engine = _engine(url, schema)
    try:
        return Admin(engine).doctor()
    finally:
        engine.close()


def _engine(url: str | None, schema: str | None) -> Engine:
    return _wiring.engine(
        sources.database_url(url),
        schema=sources.setting("schema", schema),
        redis=sources.setting("redis_url"),
    )
