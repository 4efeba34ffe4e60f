"""Look for a text in every column of every table, by the server's catalog.

A table or a column that is added later is searched, too: nothing here names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLES = """
SELECT c.relname FROM pg_class AS c
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY 1
"""
_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY 1, 2
"""
# What can hold words: numbers, times and ids of workers cannot.
_WORDS = {"text", "text[]", "json", "jsonb", "bytea", "character varying"}


def tables(url: str, schema: str = "tenure") -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return [name for (name,) in connection.execute(_TABLES, [schema])]


def columns(url: str, schema: str = "tenure") -> list[tuple[str, str]]:
    """Every column that can hold words."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(_COLUMNS, [schema]).fetchall()
    return [(table, column) for table, column, kind in rows if kind in _WORDS]


def columns_with(url: str, text: str, schema: str = "tenure") -> set[tuple[str, str]]:
    """Which columns hold this text in any row."""
    found = set[tuple[str, str]]()
    with psycopg.connect(url, autocommit=True) as connection:
        by_table: dict[str, list[str]] = {}
        for table, column, _ in connection.execute(_COLUMNS, [schema]).fetchall():
            by_table.setdefault(table, []).append(column)
        for table, names in by_table.items():
            parts = [
                sql.SQL("bool_or(strpos({}::text, {}) > 0)").format(sql.Identifier(name), text)
                for name in names
            ]
            query = sql.SQL("SELECT {} FROM {}").format(
                sql.SQL(", ").join(parts), sql.Identifier(schema, table)
            )
            [row] = connection.execute(query).fetchall()
            found |= {(table, name) for name, has in zip(names, row, strict=True) if has}
    return found


def contents(url: str, schema: str = "tenure") -> Mapping[str, list[str]]:
    """Every row of every table, as text, sorted."""
    with psycopg.connect(url, autocommit=True) as connection:
        return {
            table: sorted(
                row
                for (row,) in connection.execute(
                    sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, table))
                )
            )
            for table in tables(url, schema)
        }
