"""Database schema commands: status, migrations and maintenance."""

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
    """The database schema compared with this release.

    Attributes:
        version: The schema's version.
        needed: The version this release needs.
        pending: Migrations not applied yet.
        problem: Why the schema is incompatible, or None.
    """

    version: int
    needed: int
    pending: Sequence[str]
    problem: str | None = None

    @property
    def fits(self) -> bool:
        """Whether this release can work with the schema."""
        return self.problem is None


class Schema(CommandGroup):
    """Schema commands: `app.admin.schema`."""

    @AdminCommand
    def status(self) -> Op[SchemaStatus]:
        """Compare the schema with this release.

        Returns:
            Both versions, and the pending migrations.
        """
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
        """List the migrations that `migrate` would apply, in order.

        Args:
            to: The target version (default: the newest).

        Returns:
            Each migration with its direction, such as `"001_initial up"`.

        Raises:
            SchemaTooNew: The schema is newer than this release.
        """
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
        """Migrate the schema up or down, and create the partitions that this release needs.

        Migrating down deletes the data in the affected tables.

        Args:
            to: The target version (default: the newest).

        Returns:
            The applied migrations.

        Raises:
            SchemaError: This release can't migrate the schema.
        """
        with self._engine.session() as session:
            applied = session.run(self._engine.store.schema.migrate(to=to))
            if to is None or to == len(self._engine.migrations):
                session.run(self._store.maintenance.maintain())
            return applied

    async def amigrate(self, *, to: int | None = None) -> Sequence[str]:
        """Async version of `migrate`. It keeps running even if you stop awaiting it.

        Args:
            to: The target version (default: the newest).

        Returns:
            The applied migrations.
        """
        return await on_a_thread(partial(self.migrate, to=to))

    @AdminCommand
    def maintain(self) -> Op[MaintenanceReport]:
        """Create upcoming partitions and drop expired ones. This requires the schema owner's role.

        Returns:
            The created and dropped partitions.
        """
        return self._store.maintenance.maintain()

    amaintain: Final = AsyncTwin(maintain)


def sql(schema: str | None = None, *, since: int = 0, to: int | None = None) -> str:
    """Return migrations as SQL, for Alembic's `op.execute` or Django's `RunSQL`.

    This doesn't connect to a database. Call `maintain` afterwards to create the partitions.

    Args:
        schema: The schema that holds Tenure's tables (default: as configured).
        since: The current version (default: 0).
        to: The target version (default: the newest).

    Returns:
        The SQL script.

    Raises:
        InvalidValue: The schema's name needs quoting, or a version does not exist.
    """
    return _wiring.script(_settings.resolve("schema", schema), since=since, to=to)


def roles(schema: str | None = None) -> str:
    """Return SQL that creates the database roles, each with the least privileges it needs.

    This doesn't connect to a database.

    Args:
        schema: The schema that holds Tenure's tables (default: as configured).

    Returns:
        The SQL script.
    """
    return _wiring.roles(_settings.resolve("schema", schema))
