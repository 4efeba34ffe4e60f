"""The schema as an operator sees it: which version it has, how it gets to another, its upkeep."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tenure import _settings, _wiring
from tenure._model.results import MaintenanceReport
from tenure._store import migrations
from tenure._store.steps import Op
from tenure.admin._commands import AdminCommand, AsyncTwin, CommandGroup, on_a_thread
from tenure.errors import SchemaError


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The database's schema beside this release; `problem` says why they do not fit, if so."""

    version: int
    needed: int
    pending: Sequence[str]
    problem: str | None = None

    @property
    def fits(self) -> bool:
        """Whether this release can work with the schema."""
        return self.problem is None


class Schema(CommandGroup):
    """Commands on the schema: `app.admin.schema`."""

    @AdminCommand
    def status(self) -> Op[SchemaStatus]:
        """Which version the schema has, which this release needs, and what is pending."""
        known = self._engine.migrations
        found, breaking = yield from self._engine.store.schema.version()
        problem = None
        try:
            migrations.check(found, needed=len(known), breaking_since=breaking)
        except SchemaError as error:
            problem = str(error)
        pending = [migration.name for migration in known[found:]]
        return SchemaStatus(found, len(known), pending, problem)

    astatus: Final = AsyncTwin(status)

    @AdminCommand
    def plan(self, *, to: int | None = None) -> Op[Sequence[str]]:
        """The migrations that `migrate` would apply, in order."""
        known = self._engine.migrations
        found, _ = yield from self._engine.store.schema.version()
        goal = len(known) if to is None else to
        if found > len(known) and goal == len(known):
            return []
        if found > len(known):
            migrations.check(found, needed=len(known), breaking_since=found)
        steps = migrations.way(known, since=found, to=goal)
        return [f"{migration.name} {'up' if up else 'down'}" for migration, up in steps]

    aplan: Final = AsyncTwin(plan)

    def migrate(self, *, to: int | None = None) -> Sequence[str]:
        """Bring the schema to a version, up or down, and make the partitions that this release
        needs; answers with the migrations applied. Down takes what is in the tables away."""
        with self._engine.session() as session:
            applied = session.run(self._engine.store.schema.migrate(to=to))
            if to is None or to == len(self._engine.migrations):
                session.run(self._store.maintenance.maintain())
            return applied

    async def amigrate(self, *, to: int | None = None) -> Sequence[str]:
        """The same in the async world, on a thread: it goes on even if nobody awaits it."""
        return await on_a_thread(partial(self.migrate, to=to))

    @AdminCommand
    def maintain(self) -> Op[MaintenanceReport]:
        """Make the partitions ahead, drop what is past its retention. Needs the owner's role."""
        return self._store.maintenance.maintain()

    amaintain: Final = AsyncTwin(maintain)


def sql(schema: str | None = None, *, since: int = 0, to: int | None = None) -> str:
    """The migrations from one version to another as text, for Alembic's `op.execute` or Django's
    `RunSQL`. Touches no database. The partitions are made by `maintain`."""
    return _wiring.script(_settings.resolve("schema", schema), since=since, to=to)


def roles(schema: str | None = None) -> str:
    """The statements that make the database's roles, one for each kind of program, and grant each
    what it needs and no more. Touches no database."""
    return _wiring.roles(_settings.resolve("schema", schema))
