"""A schema as the server's catalog has it, in words that two databases can be compared by."""

from __future__ import annotations

from importlib import resources

import psycopg

from tenure._store.postgres.statements import in_schema

_PARTS = {
    "relation": """
        SELECT format('%s %s %s %s %s', c.relname, c.relkind, c.relpersistence,
            coalesce(pg_get_partkeydef(c.oid), '-'),
            (SELECT array_agg(o ORDER BY o) FROM unnest(c.reloptions) AS o))
        FROM pg_class AS c
        WHERE c.relnamespace = $1::text::regnamespace AND c.relkind NOT IN ('i', 'I')
    """,
    "column": """
        SELECT format('%s.%s #%s %s %s default %s identity %s generated %s collation %s',
            c.relname, a.attname,
            row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),
            format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attnotnull THEN 'NOT NULL' ELSE 'NULL' END,
            coalesce(pg_get_expr(d.adbin, d.adrelid), '-'), a.attidentity, a.attgenerated,
            a.attcollation::regcollation)
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p')
    """,
    "constraint": """
        SELECT format('%s %s: %s', n.conrelid::regclass, n.conname, pg_get_constraintdef(n.oid))
        FROM pg_constraint AS n
        WHERE n.connamespace = $1::text::regnamespace
    """,
    "index": """
        SELECT format('%s %s valid %s', pg_get_indexdef(i.indexrelid), c.reloptions, i.indisvalid)
        FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE c.relnamespace = $1::text::regnamespace
    """,
    "sequence": """
        SELECT format('%s %s from %s by %s to %s cache %s cycle %s owned by %s.%s', c.relname,
            s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqcache, s.seqcycle,
            d.refobjid::regclass, d.refobjsubid)
        FROM pg_sequence AS s
        JOIN pg_class AS c ON c.oid = s.seqrelid
        LEFT JOIN pg_depend AS d ON d.objid = c.oid AND d.deptype IN ('a', 'i')
            AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        WHERE c.relnamespace = $1::text::regnamespace
    """,
    "trigger": """
        SELECT format('%s on %s', t.tgname, t.tgrelid::regclass)
        FROM pg_trigger AS t
        JOIN pg_class AS c ON c.oid = t.tgrelid
        WHERE c.relnamespace = $1::text::regnamespace
    """,
    "function": """
        SELECT format('%s %s', pg_get_functiondef(p.oid), p.proacl)
        FROM pg_proc AS p
        WHERE p.pronamespace = $1::text::regnamespace
    """,
}


def catalog(url: str, schema: str = "tenure") -> list[str]:
    """Everything that is in a schema, one line each, sorted."""
    lines = []
    with psycopg.connect(url) as connection:
        for part, query in _PARTS.items():
            cursor = psycopg.RawCursor(connection)
            rows = cursor.execute(query.encode(), [schema]).fetchall()
            lines += [f"{part} {row[0]}" for row in rows]
    return sorted(lines)


def snapshot(schema: str = "tenure") -> str:
    """The text of schema.sql, for one schema."""
    file = resources.files("tenure._store.postgres") / "schema.sql"
    return in_schema(file.read_text(), schema)
