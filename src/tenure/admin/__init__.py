"""What an operator can see and do: one method per verb, sync, with an async twin for each.

A command, a route and a page are spellings of these methods. Every change takes who and why
(`By`), and is in the audit by its own transaction. What the methods take and give is here too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tenure import _settings, _wiring
from tenure._model.audit import By
from tenure._model.diagnostics import Finding
from tenure._model.job import State
from tenure._model.operation import Changes, Filter
from tenure._rules.access import allows, covers, visible
from tenure._rules.formatting import compact, measured
from tenure._rules.liveness import accepts_jobs_from, health, is_paused, live
from tenure._rules.operations import selected, selector_of
from tenure._rules.redaction import Redactor
from tenure._rules.selector_syntax import parse as parse_selector
from tenure._rules.selector_syntax import text as selector_text
from tenure._rules.serialization import dump as to_json
from tenure._rules.stats import BOUNDS
from tenure._rules.timing import describe_timing
from tenure._store.engine import Engine
from tenure.admin._commands import SubGroup
from tenure.admin.doctor import Doctor
from tenure.admin.installation import (
    Audit,
    Queues,
    RuntimeSettings,
    Setting,
    SystemCommands,
    Workers,
)
from tenure.admin.jobs import EnqueuedMany, FailedGroups, JobList, JobRequest, Jobs
from tenure.admin.operations import ItemList, Operations
from tenure.admin.schedules import Run, Schedules, preview_timing
from tenure.admin.schema import Schema, SchemaStatus, roles, sql
from tenure.admin.search import WINDOWS, JobSearch
from tenure.admin.stats import OverviewCommands, StatsCommands
from tenure.admin.tokens import CreatedToken, Tokens

__all__ = [
    "BOUNDS",
    "WINDOWS",
    "Admin",
    "Audit",
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
    "Jobs",
    "Operations",
    "Queues",
    "Redactor",
    "Run",
    "RuntimeSettings",
    "Schedules",
    "Schema",
    "SchemaStatus",
    "Setting",
    "State",
    "Tokens",
    "Workers",
    "accepts_jobs_from",
    "allows",
    "compact",
    "connect",
    "covers",
    "describe_timing",
    "examine",
    "health",
    "is_paused",
    "live",
    "measured",
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


class Admin(StatsCommands, OverviewCommands, SystemCommands, Doctor):
    """What an operator can do to one database: commands on jobs, queues, workers and the rest."""

    jobs: Final = SubGroup(Jobs)
    queues: Final = SubGroup(Queues)
    workers: Final = SubGroup(Workers)
    schedules: Final = SubGroup(Schedules)
    operations: Final = SubGroup(Operations)
    settings: Final = SubGroup(RuntimeSettings)
    tokens: Final = SubGroup(Tokens)
    audit: Final = SubGroup(Audit)
    schema: Final = SubGroup(Schema)


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
            session.run(engine.store.schema.check())
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
