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
from tenure._model.finding import Fault, Finding, Level
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
from tenure._model.overview import (
    Attention,
    AttentionCode,
    Completion,
    Holder,
    HolderKind,
    Hour,
    Numbers,
    Overview,
    QueueFigures,
    Target,
    TargetKind,
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
from tenure._model.selector import Argument, Bound, Comparing, Selector, View
from tenure._model.sights import AuditPage, Lately, LeaseRow, Pace, Paces
from tenure._model.standing import Standing, StandingCode
from tenure._model.stats import Count, Depth, FailedGroup, Spread, Stats, Tally
from tenure._model.system import Durability, History, System
from tenure._model.vitals import Lateness, Storage, TableSize, TickCount, Total, Totals
from tenure._model.worker import Health, Presence, WorkerRow
from tenure._rules.access import allows, covers, visible
from tenure._rules.histograms import BOUNDS
from tenure._rules.operations import selected, selector_of
from tenure._rules.pausing import is_paused
from tenure._rules.presence import health, live, takes
from tenure._rules.redaction import Redactor
from tenure._rules.selectors import parse as parse_selector
from tenure._rules.selectors import text as selector_text
from tenure._rules.spoken import in_words
from tenure._rules.values import dump as plain
from tenure._store.engine import Engine
from tenure.admin.doctor import Doctor
from tenure.admin.enqueuing import EnqueuedMany, JobRequest
from tenure.admin.installation import Installation, Setting
from tenure.admin.jobs import JobList, Jobs
from tenure.admin.operations import ItemList, Operations
from tenure.admin.overview import Glance
from tenure.admin.previews import Run, preview_timing
from tenure.admin.schedules import Schedules
from tenure.admin.schema import SchemaStatus, roles, sql
from tenure.admin.searching import WINDOWS, JobSearch, Searching
from tenure.admin.sights import Sights
from tenure.admin.stats import FailedGroups, Figures
from tenure.admin.tokens import CreatedToken, Tokens

__all__ = [
    "BOUNDS",
    "EVERY_QUEUE",
    "WINDOWS",
    "Admin",
    "Argument",
    "AttemptRow",
    "Attention",
    "AttentionCode",
    "AuditPage",
    "AuditRow",
    "Bound",
    "By",
    "Cancelling",
    "Changes",
    "Comparing",
    "Completion",
    "Count",
    "CreatedToken",
    "Deleting",
    "Depth",
    "Durability",
    "Ending",
    "Enqueued",
    "EnqueuedMany",
    "FailedGroup",
    "FailedGroups",
    "Fault",
    "Filter",
    "Finding",
    "Grant",
    "Health",
    "History",
    "Holder",
    "HolderKind",
    "Hour",
    "ItemList",
    "ItemOutcome",
    "JobList",
    "JobRequest",
    "JobRow",
    "JobSearch",
    "Lately",
    "Lateness",
    "LeaseRow",
    "Level",
    "Membership",
    "Missed",
    "Numbers",
    "OperationItem",
    "OperationKind",
    "OperationRow",
    "OperationState",
    "Operations",
    "Overlap",
    "Overview",
    "Pace",
    "Paces",
    "Policy",
    "PolicyChange",
    "Presence",
    "QueueFigures",
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
    "Selector",
    "Setting",
    "Shift",
    "Spread",
    "Standing",
    "StandingCode",
    "State",
    "Stats",
    "Storage",
    "System",
    "TableSize",
    "Tally",
    "Target",
    "TargetKind",
    "TickCount",
    "TickOutcome",
    "TickReason",
    "TickRow",
    "Timing",
    "TokenRow",
    "TokenState",
    "Tokens",
    "Total",
    "Totals",
    "Upkept",
    "View",
    "WorkerRow",
    "allows",
    "connect",
    "covers",
    "examine",
    "health",
    "in_words",
    "is_paused",
    "live",
    "parse_selector",
    "plain",
    "preview_timing",
    "roles",
    "selected",
    "selector_of",
    "selector_text",
    "sql",
    "takes",
    "visible",
]


class Admin(Jobs, Searching, Installation, Figures, Glance, Sights, Doctor):
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
