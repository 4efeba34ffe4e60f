"""How the server, the schema and this session's rights are: what a doctor asks."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from tenure._model.condition import (
    Condition,
    Drift,
    LateUpkeep,
    LockedJob,
    NotifyQueue,
    ServerSetting,
    Unkept,
)
from tenure._model.finding import Fault
from tenure._model.ids import JobId
from tenure._store.port import Op, Rows
from tenure._store.postgres.drawing import Drawing, drawing
from tenure._store.postgres.roles import GRANTS, ROLES
from tenure._store.postgres.upkeep import Upkeep

_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit", "autovacuum", "track_counts")
_RIGHT = re.compile(r"(\w+)(?: \(([^)]*)\))?")
# Whoever has no name of ours runs workers.
_ANYBODY = "worker"
# Upkeep is tried every hour, and gives way to readers.
_PATIENCE = timedelta(days=2)
# Autovacuum comes to the table of jobs after 1,000; by then it is far behind.
_DEAD = 20_000


class Conditions(Upkeep):
    """The part of the store that a doctor asks."""

    def condition(self) -> Op[Condition]:
        """What an operator should know of the server: version, role, settings, its clock."""
        [row] = yield self._query("condition")
        settings = yield self._query("server_settings", names=list(_SETTINGS))
        found = {each["name"]: ServerSetting(each["value"], each["source"]) for each in settings}
        return Condition(**row, settings=found)

    def rights(self, role: str) -> Op[Sequence[str]]:
        """The statements that grant this role what its programs need and it does not have."""
        named = {f"{self.schema}_{kind}": kind for kind in ROLES}.get(role, _ANYBODY)
        # The owner has all of it by owning it; what a server needs is the most that is granted.
        kind = "server" if named == "owner" else named
        asked = [
            (thing, column, right)
            for thing, granted in GRANTS.items()
            for right, columns in _RIGHT.findall(granted.get(kind, ""))
            for column in (columns.split(", ") if columns else [""])
        ]
        rows = yield self._query(
            "rights",
            schema=self.schema,
            things=[thing.rpartition(" ")[2] for thing, _, _ in asked],
            columns=[column for _, column, _ in asked],
            rights=[right for _, _, right in asked],
        )
        return list(self._grants(rows, role))

    def _grants(self, rows: Rows, role: str) -> Iterator[str]:
        places = {thing.rpartition(" ")[2]: thing for thing in GRANTS}
        for row in rows:
            kind, _, thing = places.get(row["thing"], "").rpartition(" ")
            column = f" ({row['column']})" if row["column"] else ""
            place = f"{kind} {self.schema}.{thing}".strip() if thing else f"SCHEMA {self.schema}"
            yield f"GRANT {row['right']}{column} ON {place} TO {role}"

    def drift(self) -> Op[Sequence[Drift]]:
        """Where the schema is not as this release has it."""
        rows = yield self._query("drawn", schema=self.schema)
        drawn = drawing(self.schema)
        there = {(row["kind"], row["of"], row["name"]) for row in rows}
        found = [*self._missing(drawn, there), *self._without_index(drawn, there)]
        invalid = [(row["of"], row["name"]) for row in rows if not row["valid"]]
        return [*found, *self._invalid(drawn, invalid)]

    def _missing(self, drawn: Drawing, there: set[tuple[str, str, str]]) -> Iterator[Drift]:
        for name, sql in drawn.sequences.items():
            if ("sequence", name, name) not in there:
                yield Drift(Fault.TABLE_MISSING, f"sequence {name} is missing", sql)
        for name, table in drawn.tables.items():
            if ("table", name, name) not in there:
                own = [index.sql for index in drawn.indexes.values() if index.table == name]
                sql = "; ".join([table.sql, *own])
                yield Drift(Fault.TABLE_MISSING, f"table {name} is missing", sql)
                continue
            alter = f"ALTER TABLE {self.schema}.{name} ADD"
            for column, sql in table.columns.items():
                if ("column", name, column) not in there:
                    what = f"column {column} of table {name} is missing"
                    yield Drift(Fault.COLUMN_MISSING, what, f"{alter} COLUMN {sql}")
            for constraint, sql in table.constraints.items():
                if ("constraint", name, constraint) not in there:
                    what = f"constraint {constraint} of table {name} is missing"
                    yield Drift(Fault.CONSTRAINT_MISSING, what, f"{alter} {sql}")

    def _without_index(self, drawn: Drawing, there: set[tuple[str, str, str]]) -> Iterator[Drift]:
        for name, index in drawn.indexes.items():
            if ("table", index.table, index.table) not in there:
                continue
            if ("index", index.table, name) not in there:
                what = f"index {name} of table {index.table} is missing"
                yield Drift(Fault.INDEX_MISSING, what, _gently(drawn, name))

    def _invalid(self, drawn: Drawing, found: Sequence[tuple[str, str]]) -> Iterator[Drift]:
        for table, name in found:
            what = f"index {name} of table {table} is not valid"
            index = drawn.indexes.get(name)
            if index is not None and drawn.tables[index.table].partitioned:
                sql = f"DROP INDEX {self.schema}.{name}; {index.sql}"
            elif name.endswith(("_ccnew", "_ccold")):
                sql = f"DROP INDEX CONCURRENTLY {self.schema}.{name}"
            else:
                sql = f"REINDEX INDEX CONCURRENTLY {self.schema}.{name}"
            yield Drift(Fault.INDEX_INVALID, what, sql)

    def late_upkeep(self) -> Op[LateUpkeep]:
        """What upkeep should have done by now."""
        set_days = yield from self.settings()
        rows = yield from self._planned(set_days, ahead=1, patience=_PATIENCE)
        missing = {row["day"] for row in rows if row["step"] <= 2}
        past = {row["day"] for row in rows if row["step"] > 2}
        return LateUpkeep(sorted(missing), sorted(past))

    def notify_queue(self) -> Op[NotifyQueue]:
        """How full the server's queue of notifications is."""
        [row] = yield self._query("notify_queue")
        return NotifyQueue(**row)

    def locked(
        self, queues: Sequence[str], older_than: timedelta, *, count: int
    ) -> Op[Sequence[LockedJob]]:
        """Jobs of these queues that have been due for longer than this and that claims pass over,
        because a transaction as old has their row locked."""
        rows = yield self._query("locked", queues=list(queues), older_than=older_than, count=count)
        return [
            LockedJob(JobId(row["id"]), row["queue"], row["pid"], row["application"], row["since"])
            for row in rows
        ]

    def unkept(self) -> Op[Unkept]:
        """Which of our tables are not vacuumed as they should be."""
        off = [row["name"] for row in (yield self._query("not_vacuumed"))]
        tables = yield self._query("tables")
        dead = {
            row["name"]: row["dead_rows"]
            for row in tables
            if row["dead_rows"] >= max(_DEAD, row["live_rows"])
        }
        return Unkept(off, dead)


def _gently(drawn: Drawing, name: str) -> str:
    """The statement that makes an index while work goes on, where there is one."""
    index = drawn.indexes[name]
    if drawn.tables[index.table].partitioned:
        return index.sql
    return index.sql.replace(f"INDEX {name}", f"INDEX CONCURRENTLY {name}", 1)
