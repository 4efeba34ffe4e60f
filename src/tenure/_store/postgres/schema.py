"""Migrate, check the version, and the expected schema.

The schema as this release has it, read from `schema.sql`: each thing by its name, with the SQL
that makes it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

from tenure._store import migrations as plans
from tenure._store.migrations import Migration, Script
from tenure._store.postgres.statements import QueryBase, check_schema, in_schema
from tenure._store.steps import Op, RawSql, atomically
from tenure.errors import QueryFailed, SchemaError, SchemaTooOld

_ALREADY = frozenset({"23505", "42P06", "42P07"})
_LOCK_TRIES = 10
_TRY_ALONE = "SELECT pg_try_advisory_lock(hashtext('tenure migrate')) AS alone"
_NO_LONGER_ALONE = (
    "RESET lock_timeout; RESET statement_timeout; "
    "SELECT pg_advisory_unlock(hashtext('tenure migrate'))"
)
_ALONE_TRIES = 3000
_BOOTSTRAP = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.schema_version (
    version    integer     NOT NULL,
    name       text        NOT NULL,
    breaking   boolean     NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT schema_version_pkey PRIMARY KEY (version)
)
"""

_RECORD = (
    "INSERT INTO {schema}.schema_version (version, name, breaking, applied_at)\n"
    "VALUES ({version}, '{name}', {breaking}, clock_timestamp());"
)
_FORGET = "DELETE FROM {schema}.schema_version WHERE version = {version};"


def migrations() -> Sequence[Migration]:
    """The migrations of this release."""
    return plans.load(resources.files(__package__) / "migrations")


def script(schema: str, *, since: int = 0, to: int | None = None) -> str:
    """The statements that lead from one version to another, record included, for the tool that
    migrates the rest of a program's database."""
    known = migrations()
    steps = plans.way(known, since=since, to=len(known) if to is None else to)
    parts = [_BOOTSTRAP.format(schema=check_schema(schema)).strip() + ";"] if since == 0 else []
    for migration, up in steps:
        text = in_schema((migration.up if up else migration.down).text, schema).strip()
        record = _RECORD if up else _FORGET
        recorded = record.format(
            schema=schema,
            version=migration.version,
            name=migration.name,
            breaking=str(migration.up.breaking).lower(),
        )
        parts.append(f"-- {migration.name}, {'up' if up else 'down'}\n{text}\n\n{recorded}")
    return "\n\n".join(parts) + "\n" if steps else ""


class SchemaQueries(QueryBase):
    """The part of the store that brings the schema to a version."""

    def version(self) -> Op[tuple[int, int | None]]:
        """The schema's version, 0 if there is none, and the newest breaking one. SchemaTooOld for
        a schema from before the first release."""
        try:
            rows = yield self._query("version")
        except QueryFailed as error:
            if not error.is_missing_schema:
                raise
            return 0, None
        SchemaTooOld.check_first_migration(rows[0]["first"], self.schema)
        return rows[0]["version"], rows[0]["breaking"]

    def check(self) -> Op[None]:
        """SchemaTooOld or SchemaTooNew, with what to do, unless this release can work with it."""
        found, breaking = yield from self.version()
        plans.check(found, needed=len(migrations()), breaking_since=breaking)

    def migrate(
        self, *, to: int | None = None, steps: Sequence[Migration] | None = None
    ) -> Op[Sequence[str]]:
        """Bring the schema to a version, up or down; answers with the migrations applied.

        Over a sync session: an async one has a deadline, and a migration may take long. One
        transaction per migration. A lock that is not had in time lets everybody else
        pass, and is tried again: a queue behind a waiting ALTER would stop all work.
        """
        known = migrations() if steps is None else steps
        goal = len(known) if to is None else to
        plans.check_version(goal, known)
        yield from self._bootstrap()
        applied: list[str] = []
        while (done := (yield from self._persistently(known, goal))) is not None:
            applied += done
        return applied

    def _bootstrap(self) -> Op[None]:
        """IF NOT EXISTS does not see what another migrator has not committed yet."""
        try:
            yield RawSql(_BOOTSTRAP.format(schema=self.schema))
        except QueryFailed as error:
            if error.sqlstate not in _ALREADY:
                raise
            yield RawSql(_BOOTSTRAP.format(schema=self.schema))

    def _persistently(self, known: Sequence[Migration], goal: int) -> Op[list[str] | None]:
        for attempt in range(1, _LOCK_TRIES + 1):
            try:
                return (yield from self._next(known, goal))
            except QueryFailed as error:
                if not error.is_conflict or attempt == _LOCK_TRIES:
                    raise
        raise AssertionError("unreachable")

    def _next(self, known: Sequence[Migration], goal: int) -> Op[list[str] | None]:
        """Apply the next migration towards the goal; empty if another did, None when there."""
        found, _ = yield from self.version()
        if found == goal or (found > len(known) and goal == len(known)):
            return None
        if found > len(known):
            plans.check(found, needed=len(known), breaking_since=found)
        up = found < goal
        migration = known[found] if up else known[found - 1]
        script = migration.up if up else migration.down
        op = self._apply(migration, script, expected=found, up=up)
        done = yield from atomically(op) if script.transaction else self._alone(op)
        return [f"{migration.name} {'up' if up else 'down'}"] if done else []

    def _alone(self, op: Op[bool]) -> Op[bool]:
        """The same without a transaction: one migrator at a time, and no limit on its waits.

        An index that was given up half way stays behind, invalid, and in the way.
        """
        # Asked for again and again: a wait would hold a snapshot that the index waits for.
        for _ in range(_ALONE_TRIES):
            if (yield RawSql(_TRY_ALONE, session=True))[0]["alone"]:
                break
            yield RawSql("SELECT pg_sleep(0.1)")
        else:
            raise SchemaError("another migration is running; try again when it is done")
        yield RawSql("SET lock_timeout = 0; SET statement_timeout = 0", session=True)
        try:
            done = yield from op
        except Exception:
            yield RawSql(_NO_LONGER_ALONE, session=True)
            raise
        yield RawSql(_NO_LONGER_ALONE, session=True)
        return done

    def _apply(self, migration: Migration, script: Script, *, expected: int, up: bool) -> Op[bool]:
        if script.transaction:
            yield RawSql("SET LOCAL lock_timeout = '2s'")
            yield RawSql("SET LOCAL statement_timeout = 0")
            # Two migrators: the second waits here, and then finds the work done.
            yield RawSql(f"LOCK TABLE {self.schema}.schema_version IN EXCLUSIVE MODE")
        found, _ = yield from self.version()
        if found != expected:
            return False
        yield RawSql(in_schema(script.text, self.schema))
        if up:
            yield self._query(
                "record_version",
                version=migration.version,
                name=migration.name,
                breaking=script.breaking,
            )
        else:
            yield self._query("forget_version", version=migration.version)
        return True


_TABLE = re.compile(r"CREATE TABLE /\*schema\.\*/(\w+) \(\n(.*?)\n\)(.*)\Z", re.DOTALL)
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+)\s+ON /\*schema\.\*/(\w+) ", re.DOTALL)
_SEQUENCE = re.compile(r"CREATE SEQUENCE /\*schema\.\*/(\w+)")
_OWNED = re.compile(r"ALTER SEQUENCE /\*schema\.\*/\w+ OWNED BY /\*schema\.\*/(\w+)\.")
_ELEMENT = re.compile(r"^    (?=[a-z_A-Z])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the statement that makes it, its columns and constraints by name."""

    sql: str
    partitioned: bool
    columns: Mapping[str, str]
    constraints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that is no constraint's, and the table that it is of."""

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class ExpectedSchema:
    """All of it, for one schema."""

    tables: dict[str, Table] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    sequences: dict[str, str] = field(default_factory=dict)


@cache
def expected_schema(schema: str) -> ExpectedSchema:
    """The schema of this release under this name."""
    drawn = ExpectedSchema()
    for text in _statements((resources.files(__package__) / "schema.sql").read_text()):
        sql = " ".join(in_schema(text, schema).split())
        if found := _TABLE.match(text):
            name, body, rest = found.groups()
            columns, constraints = _elements(in_schema(body, schema))
            drawn.tables[name] = Table(sql, "PARTITION BY" in rest, columns, constraints)
        elif found := _INDEX.match(text):
            drawn.indexes[found[1]] = Index(found[2], sql)
        elif found := _SEQUENCE.match(text):
            drawn.sequences[found[1]] = sql
        elif found := _OWNED.match(text):
            owner = drawn.tables[found[1]]
            drawn.tables[found[1]] = replace(owner, sql=f"{owner.sql}; {sql}")
    return drawn


def _statements(text: str) -> Iterator[str]:
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return (part.strip() for part in re.split(r";\s*$", plain, flags=re.MULTILINE) if part.strip())


def _elements(body: str) -> tuple[dict[str, str], dict[str, str]]:
    columns: dict[str, str] = {}
    constraints: dict[str, str] = {}
    for element in _ELEMENT.split(body)[1:]:
        words = " ".join(element.split()).removesuffix(",")
        if words.startswith("CONSTRAINT "):
            constraints[words.split()[1]] = words
        else:
            columns[words.split()[0]] = words
    return columns, constraints
