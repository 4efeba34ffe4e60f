"""Operator commands: inspect and manage jobs, queues, schedules and workers.

The command line, the HTTP API and the dashboard all call these methods. Each has an async version
whose name is prefixed with `a`. Every change takes a `By` and writes to the audit log in the same
transaction.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tenure import _settings, _wiring
from tenure._model.audit import By
from tenure._model.diagnostics import Finding
from tenure._model.job import State
from tenure._model.operation import Changes, Filter
from tenure._rules.access import allows, allows_task, covers, role_scopes, visible
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
from tenure.admin.erasure import ErasureCommands
from tenure.admin.installation import (
    Audit,
    Queues,
    RuntimeSettings,
    Setting,
    SystemCommands,
    Workers,
)
from tenure.admin.jobs import EnqueuedMany, FailedGroups, JobList, JobRequest, Jobs
from tenure.admin.keys import DeduplicationKeys
from tenure.admin.notices import Notices
from tenure.admin.operations import ItemList, Operations
from tenure.admin.schedules import Run, Schedules, preview_timing
from tenure.admin.schema import Schema, SchemaStatus, roles, sql
from tenure.admin.search import WINDOWS, JobSearch
from tenure.admin.sessions import OpenedSession, Sessions, SessionTerms, SignInCode
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
    "DeduplicationKeys",
    "EnqueuedMany",
    "FailedGroups",
    "Filter",
    "ItemList",
    "JobList",
    "JobRequest",
    "JobSearch",
    "Jobs",
    "Notices",
    "OpenedSession",
    "Operations",
    "Queues",
    "Redactor",
    "Run",
    "RuntimeSettings",
    "Schedules",
    "Schema",
    "SchemaStatus",
    "SessionTerms",
    "Sessions",
    "Setting",
    "SignInCode",
    "State",
    "Tokens",
    "Workers",
    "accepts_jobs_from",
    "allows",
    "allows_task",
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
    "role_scopes",
    "roles",
    "selected",
    "selector_of",
    "selector_text",
    "sql",
    "to_json",
    "visible",
]


class Admin(StatsCommands, OverviewCommands, SystemCommands, ErasureCommands, Doctor):
    """Operator commands for one database: `app.admin`.

    Each command has an async version whose name is prefixed with `a`.

    Attributes:
        jobs: Job commands.
        keys: Deduplication key commands.
        queues: Queue commands.
        workers: Worker commands.
        schedules: Schedule commands.
        operations: Batch operation commands.
        settings: Installation setting commands.
        tokens: Access token commands.
        sessions: Dashboard session commands.
        notices: Commands for notice rules.
        audit: The audit log.
        schema: Database schema commands.
    """

    jobs: Final = SubGroup(Jobs)
    keys: Final = SubGroup(DeduplicationKeys)
    queues: Final = SubGroup(Queues)
    workers: Final = SubGroup(Workers)
    schedules: Final = SubGroup(Schedules)
    operations: Final = SubGroup(Operations)
    settings: Final = SubGroup(RuntimeSettings)
    tokens: Final = SubGroup(Tokens)
    sessions: Final = SubGroup(Sessions)
    notices: Final = SubGroup(Notices)
    audit: Final = SubGroup(Audit)
    schema: Final = SubGroup(Schema)


@contextmanager
def connect(
    url: str | None = None, *, schema: str | None = None, check: bool = True
) -> Iterator[Admin]:
    """Open one connection for a short-lived program, and close it when the block ends.

    The commands' async versions open their own connections.

    Args:
        url: The database URL (default: as configured).
        schema: The schema that holds Tenure's tables (default: as configured).
        check: Reject a schema that is incompatible with this release (default: True).

    Returns:
        A context manager that yields an `Admin`.

    Raises:
        SchemaError: The schema is incompatible with this release.
        Unreachable: The database isn't responding.
    """
    engine = _engine(url, schema)
    with engine.session() as session:
        if check:
            session.run(engine.store.schema.check())
        yield Admin(engine, runner=session)


def examine(url: str | None = None, *, schema: str | None = None) -> Sequence[Finding]:
    """Run the doctor once. An unresponsive database is reported as a finding.

    Args:
        url: The database URL (default: as configured).
        schema: The schema that holds Tenure's tables (default: as configured).

    Returns:
        The findings.
    """
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
