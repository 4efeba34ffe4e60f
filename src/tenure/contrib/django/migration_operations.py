"""Operations for Django migrations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.migrations import RunSQL
from django.db.migrations.exceptions import IrreversibleError

from tenure import admin
from tenure.contrib.django import conf
from tenure.errors import SchemaTooOld

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


class Step(RunSQL):
    """Migrate Tenure's schema one version up or down, and record the version in the schema too.

    It does nothing on databases other than Tenure's, and skips what `tenure db migrate` has
    already done.

    Args:
        version: The version to migrate to.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        options = conf.read()
        self._schema = options.schema
        self._database = options.database
        super().__init__(
            admin.sql(options.schema, since=version - 1, to=version),
            admin.sql(options.schema, since=version, to=version - 1),
            hints={"tenure": True},
        )

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the version as the only argument. The SQL comes from the package."""
        return type(self).__qualname__, [self.version], {}

    def describe(self) -> str:
        """Return the line that `migrate --plan` shows."""
        return f"Tenure's schema, version {self.version}"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Migrate up to this version, unless the schema is already there."""
        if self._is_elsewhere(schema_editor):
            return
        if schema_editor.collect_sql or self._recorded_version(schema_editor) < self.version:
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: "BaseDatabaseSchemaEditor",
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Migrate down to the previous version, unless the schema is already there."""
        if self._is_elsewhere(schema_editor):
            return
        recorded = (
            self.version if schema_editor.collect_sql else self._recorded_version(schema_editor)
        )
        if recorded > self.version:
            raise IrreversibleError(
                f"schema {self._schema} must be at version {self.version}, got {recorded}; "
                f"run tenure db migrate --to {self.version} first"
            )
        if recorded == self.version:
            super().database_backwards(app_label, schema_editor, from_state, to_state)

    def _is_elsewhere(self, schema_editor: "BaseDatabaseSchemaEditor") -> bool:
        return schema_editor.connection.alias != self._database

    def _recorded_version(self, schema_editor: "BaseDatabaseSchemaEditor") -> int:
        """Return the version that Tenure recorded, or 0."""
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s)", [f"{self._schema}.schema_version"])
            if cursor.fetchone() == (None,):
                return 0
            cursor.execute(
                "SELECT max(version), max(name) FILTER (WHERE version = 1) "  # noqa: S608 - admin.sql refuses a schema that needs quoting
                f"FROM {self._schema}.schema_version"
            )
            version, first = cursor.fetchone()
        SchemaTooOld.check_first_migration(first, self._schema)
        return version or 0


def make_partitions(using: str, plan: Sequence[Any] = (), **_signal: object) -> None:
    """Create the next few days' partitions after a Tenure migration is applied."""
    from tenure.contrib.django import app  # noqa: PLC0415 - Django loads this before its apps

    ours = any(step.app_label == "tenure" and not backwards for step, backwards in plan)
    if using != app.database or not ours:
        return
    engine = app.engine
    with admin.connect(engine.url, schema=engine.schema, check=False) as connected:
        if connected.schema.status().fits:
            connected.schema.maintain()
