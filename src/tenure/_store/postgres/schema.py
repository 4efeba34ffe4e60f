"""Migrate, check the version, and read the expected schema from `schema.sql`."""

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
    return plans.load(resources.files(__package__) / "migrations")


def script(schema: str, *, since: int = 0, to: int | None = None) -> str:
    """Return the SQL from one version to another, for a program's own migration tool."""
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
    def version(self) -> Op[tuple[int, int | None]]:
        """Return the schema's version (0: none) and the newest breaking one."""
        try:
            rows = yield self._query("version")
        except QueryFailed as error:
            if not error.is_missing_schema:
                raise
            return 0, None
        SchemaTooOld.check_first_migration(rows[0]["first"], self.schema)
        return rows[0]["version"], rows[0]["breaking"]

    def check(self) -> Op[None]:
        """Raise SchemaTooOld or SchemaTooNew unless this release works with the schema."""
        version, breaking = yield from self.version()
        plans.check(version, needed=len(migrations()), breaking_since=breaking)

    def migrate(
        self, *, to: int | None = None, steps: Sequence[Migration] | None = None
    ) -> Op[Sequence[str]]:
        """Migrate the schema up or down to a version, and return the migrations that were applied.

        This needs a sync session, which has no deadline. If a lock isn't granted soon, the
        migration gives up and tries again. Otherwise, other statements would queue up behind the
        waiting ALTER, and all work would stop.
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
        """Create the version table. IF NOT EXISTS misses another migrator's open transaction."""
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
        """Apply the next migration. Return [] if another process did, or None when done."""
        version, _ = yield from self.version()
        if version == goal or (version > len(known) and goal == len(known)):
            return None
        if version > len(known):
            plans.check(version, needed=len(known), breaking_since=version)
        up = version < goal
        migration = known[version] if up else known[version - 1]
        script = migration.up if up else migration.down
        op = self._apply(migration, script, expected=version, up=up)
        done = yield from atomically(op) if script.transaction else self._alone(op)
        return [f"{migration.name} {'up' if up else 'down'}"] if done else []

    def _alone(self, op: Op[bool]) -> Op[bool]:
        """Run without a transaction or timeouts, one migrator at a time."""
        # We poll, because a waiting statement would hold a snapshot that the index build waits for.
        for _ in range(_ALONE_TRIES):
            if (yield RawSql(_TRY_ALONE, session=True))[0]["alone"]:
                break
            yield RawSql("SELECT pg_sleep(0.1)")
        else:
            raise SchemaError("another migration is running; try again when it has finished")
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
            # A second migrator waits here and then finds the work done.
            yield RawSql(f"LOCK TABLE {self.schema}.schema_version IN EXCLUSIVE MODE")
        version, _ = yield from self.version()
        if version != expected:
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
_FUNCTION = re.compile(
    r"^CREATE OR REPLACE FUNCTION /\*schema\.\*/(\w+)\((.*?)\n\)\n(.*?)\nAS \$\$(.*?)\$\$;$"
    r"\s*(REVOKE ALL ON FUNCTION .*?);$",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"--.*")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its SQL, and its columns and constraints by name."""

    sql: str
    partitioned: bool
    columns: Mapping[str, str]
    constraints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Index:
    """An index that doesn't belong to a constraint, and its table."""

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its SQL, and its definition without comments, on one line."""

    sql: str
    definition: str


@dataclass(frozen=True, slots=True)
class ExpectedSchema:
    tables: dict[str, Table] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    sequences: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)


@cache
def expected_schema(schema: str) -> ExpectedSchema:
    """Return this release's schema with this schema name."""
    expected = ExpectedSchema()
    whole = (resources.files(__package__) / "schema.sql").read_text()
    for found in _FUNCTION.finditer(whole):
        expected.functions[found[1]] = _function(found, schema)
    for text in _statements(_FUNCTION.sub("", whole)):
        sql = " ".join(in_schema(text, schema).split())
        if match := _TABLE.match(text):
            name, body, rest = match.groups()
            columns, constraints = _elements(in_schema(body, schema))
            expected.tables[name] = Table(sql, "PARTITION BY" in rest, columns, constraints)
        elif match := _INDEX.match(text):
            expected.indexes[match[1]] = Index(match[2], sql)
        elif match := _SEQUENCE.match(text):
            expected.sequences[match[1]] = sql
        elif match := _OWNED.match(text):
            owner = expected.tables[match[1]]
            expected.tables[match[1]] = replace(owner, sql=f"{owner.sql}; {sql}")
    return expected


def definition(parameters: str, options: str, body: str) -> str:
    """Return a function's definition on one line, without comments, to compare it with another."""
    return " ".join(f"({parameters.strip()}) {options} AS {_COMMENT.sub('', body)}".split())


def _function(match: re.Match[str], schema: str) -> Function:
    parameters, options, body = (in_schema(match[part], schema) for part in (2, 3, 4))
    return Function(
        " ".join(_COMMENT.sub("", in_schema(match[0], schema)).split()).removesuffix(";"),
        definition(" ".join(parameters.split()), options, body),
    )


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
