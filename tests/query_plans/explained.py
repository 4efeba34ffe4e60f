"""What PostgreSQL would do with a statement: its plan, walked node by node."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from tenure._store.postgres.statements import DEFAULT_SCHEMA, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenure._store.steps import Query

# One row per queue with settings, per setting and per worker: a page or two for ever, where
# a sequential scan is as good as an index. None of them grows with the jobs. A sequence is
# one row, and read by no other way; so is how far minutes are folded.
TINY = frozenset({"queue", "setting", "worker", "job_id_seq", "rollup_state"})

_INDEX = re.compile(r"\b[a-z_]+_(?:pkey|idx)\b")
# Which of the two, the server may choose.
_EITHER = re.compile(r"(\w+_(?:idx|pkey)) or (\w+_(?:idx|pkey))")
_DAY = re.compile(r"_\d{8}")


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a plan, and those below it."""

    fields: Mapping[str, Any]

    @property
    def kind(self) -> str:
        kind: str = self.fields["Node Type"]
        return kind

    @property
    def table(self) -> str | None:
        """The table of ours that it reads or writes, a day's partition by its parent's name."""
        if self.fields.get("Schema") != DEFAULT_SCHEMA:
            return None
        return _DAY.sub("", self.fields["Relation Name"])

    @property
    def indexes(self) -> set[str]:
        """The indexes it searches, a day's by the parent's name."""
        named = [self.fields.get("Index Name"), *self.fields.get("Conflict Arbiter Indexes", ())]
        return {_DAY.sub("", name) for name in named if name is not None}

    @property
    def is_whole(self) -> bool:
        """Whether it reads all of a table by its primary key. (A partial index read so is small,
        or is left after its first row.)"""
        name = self.fields.get("Index Name", "")
        return name.endswith("_pkey") and "Index Cond" not in self.fields

    @property
    def below(self) -> list[Node]:
        return [Node(fields) for fields in self.fields.get("Plans", ())]


@dataclass(frozen=True, slots=True)
class Plan:
    """A statement's whole plan."""

    name: str
    root: Node
    compiled: bool

    def nodes(self) -> Iterator[Node]:
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.below

    def of(self, table: str) -> list[Node]:
        """The nodes that read this table."""
        return [node for node in self.nodes() if node.table == table and node.kind != "ModifyTable"]

    @property
    def indexes(self) -> set[str]:
        """The indexes of tables that grow, wherever the plan searches them."""
        found = set().union(*(node.indexes for node in self.nodes()))
        ours = {f"{table}_" for table in TINY}
        return {
            name
            for name in found
            if not name.startswith("pg_") and not name.startswith(tuple(ours))
        }

    def faults(self, *, bitmaps: bool = False) -> list[str]:
        """What must not be in the plan of a hot statement; empty when all is well."""
        found = ["JIT compiles it"] if self.compiled else []
        for node in self.nodes():
            # A day without a page costs nothing to read; its first statistics end the plan.
            paid = node.fields.get("Total Cost") != 0
            if node.kind == "Seq Scan" and paid and node.table not in {None, *TINY}:
                found.append(f"sequential scan of {node.table}")
            if node.kind.startswith("Bitmap") and not bitmaps and node.table not in TINY:
                found.append(f"{node.kind} of {node.table}")
            if node.is_whole and node.table is not None and node.table not in TINY:
                found.append(f"scan of {node.table} by the whole of its primary key")
        header = named_indexes(self.name)
        unused = header - self.indexes
        for one, other in _EITHER.findall(_header(self.name)):
            if {one, other} & self.indexes:
                unused -= {one, other}
        found += [f"{name} is not used" for name in sorted(unused)]
        others = {name for name in self.indexes - header if not name.endswith("_pkey")}
        return found + [f"{name} is used, and not named in the header" for name in sorted(others)]


def named_indexes(name: str) -> set[str]:
    """The indexes of tables that grow which the statement's header says it uses."""
    tiny = tuple(f"{table}_" for table in TINY)
    return {found for found in _INDEX.findall(_header(name)) if not found.startswith(tiny)}


def _header(name: str) -> str:
    text = statements(DEFAULT_SCHEMA)[name].text
    return "\n".join(line for line in text.splitlines() if "--" in line)


def explain(connection: psycopg.Connection[Any], query: Query) -> Plan:
    """The plan of one prepared statement, with these parameters, as the server would run it."""
    statement = statements(DEFAULT_SCHEMA)[query.name]
    arguments = statement.arguments(query.params)
    given = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, arguments)))
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(f"PREPARE guarded AS {statement.text}".encode())
    try:
        cursor.execute(
            sql.SQL("EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE guarded {}").format(
                given if arguments else sql.SQL("")
            )
        )
        row = cursor.fetchone()
    finally:
        cursor.execute("DEALLOCATE guarded")
    assert row is not None
    root = row[0][0]["Plan"]
    return Plan(query.name, Node(root), "JIT" in row[0][0] or _compiles(connection, root))


def _compiles(connection: psycopg.Connection[Any], root: Mapping[str, Any]) -> bool:
    """Whether a server with the compiler installed would compile this plan."""
    cursor = connection.execute(
        "SELECT current_setting('jit')::boolean, current_setting('jit_above_cost')::float"
    )
    row = cursor.fetchone()
    assert row is not None
    on, above = row
    return bool(on) and 0 <= above < root["Total Cost"]
