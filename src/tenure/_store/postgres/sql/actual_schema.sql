-- $1 schema
-- Read the schema's tables, columns, constraints, sequences, triggers and indexes, without
-- partitions; for partitions, only invalid indexes.
-- Reads the catalog; locks nothing.
WITH relation AS MATERIALIZED (
    SELECT c.oid, c.relname::text AS name, c.relkind, c.relispartition
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text
)
SELECT CASE r.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind, r.name AS of, r.name, true AS valid
FROM relation AS r
WHERE r.relkind IN ('r', 'p', 'S') AND NOT r.relispartition
UNION ALL
SELECT 'column', r.name, a.attname::text, true
FROM relation AS r
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE r.relkind IN ('r', 'p') AND NOT r.relispartition
UNION ALL
SELECT 'constraint', r.name, k.conname::text, true
FROM relation AS r
JOIN pg_catalog.pg_constraint AS k ON k.conrelid = r.oid
WHERE r.relkind IN ('r', 'p') AND NOT r.relispartition
UNION ALL
-- A disabled trigger doesn't fire, so it counts as missing.
SELECT 'trigger', r.name, g.tgname::text, true
FROM relation AS r
JOIN pg_catalog.pg_trigger AS g ON g.tgrelid = r.oid AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A')
UNION ALL
SELECT 'index', t.name, r.name, i.indisvalid
FROM relation AS r
JOIN pg_catalog.pg_index AS i ON i.indexrelid = r.oid
JOIN relation AS t ON t.oid = i.indrelid
WHERE NOT t.relispartition OR NOT i.indisvalid
ORDER BY 1, 2, 3
