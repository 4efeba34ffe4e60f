"""What an operator can see and do: one method per verb, sync, with an async twin for each.

A command, a route and a page are spellings of these methods. Every change takes who and why
(`By`), and is in the audit by its own transaction. What the methods take and give is here too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tenure import _settings, _wiring
from tenure._model.audit import By
from tenure._model.diagnostics import Finding
from tenure._model.job import State
from tenure._model.operation import Changes, Filter
from tenure._rules.access import allows, covers, visible
from tenure._rules.liveness import accepts_jobs_from, health, is_paused, live
from tenure._rules.operations import selected, selector_of
from tenure._rules.redaction import Redactor
from tenure._rules.selector_syntax import parse as parse_selector
from tenure._rules.selector_syntax import text as selector_text
from tenure._rules.serialization import dump as to_json
from tenure._rules.stats import BOUNDS
from tenure._rules.timing import describe_timing
from tenure._store.engine import Engine
from tenure.admin.doctor import Doctor
from tenure.admin.installation import InspectionCommands, Installation, Setting
from tenure.admin.jobs import EnqueuedMany, JobList, JobRequest, Jobs
from tenure.admin.operations import ItemList, Operations
from tenure.admin.schedule_spec import Run, preview_timing
from tenure.admin.schedules import Schedules
from tenure.admin.schema import SchemaStatus, roles, sql
from tenure.admin.search import WINDOWS, JobSearch, SearchCommands
from tenure.admin.stats import FailedGroups, OverviewCommands, StatsCommands
from tenure.admin.tokens import CreatedToken, Tokens

__all__ = [
    "BOUNDS",
    "WINDOWS",
    "Admin",
    "By",
    "Changes",
    "CreatedToken",
    "EnqueuedMany",
    "FailedGroups",
    "Filter",
    "ItemList",
    "JobList",
    "JobRequest",
    "JobSearch",
    "Operations",
    "Redactor",
    "Run",
    "Schedules",
    "SchemaStatus",
    "Setting",
    "State",
    "Tokens",
    "accepts_jobs_from",
    "allows",
    "connect",
    "covers",
    "describe_timing",
    "examine",
    "health",
    "is_paused",
    "live",
    "parse_selector",
    "preview_timing",
    "roles",
    "selected",
    "selector_of",
    "selector_text",
    "sql",
    "to_json",
    "visible",
]


class Admin(
    Jobs, SearchCommands, Installation, StatsCommands, OverviewCommands, InspectionCommands, Doctor
):
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
        _settings.database_url(url),
        schema=_settings.resolve("schema", schema),
        redis=_settings.resolve("redis_url"),
    )
