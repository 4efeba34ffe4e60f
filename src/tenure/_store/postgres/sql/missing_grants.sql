-- $1 schema, $2 things, $3 columns, $4 rights
-- List the privileges that this session's role is missing, and whether it may use the schema.
-- Missing objects are left out.
-- Reads the catalog; locks nothing.
SELECT '' AS thing, '' AS column, 'USAGE' AS right
FROM pg_catalog.pg_namespace AS n
WHERE n.nspname = $1::text AND NOT has_schema_privilege(n.oid, 'USAGE')
UNION ALL
SELECT r.thing, r.col, r.privilege
FROM unnest($2::text[], $3::text[], $4::text[]) AS r (thing, col, privilege)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
JOIN pg_catalog.pg_class AS c ON c.relname = r.thing AND c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = r.col AND a.attnum > 0
WHERE NOT CASE
    WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, r.privilege)
    WHEN r.col <> '' THEN coalesce(has_column_privilege(c.oid, a.attnum, r.privilege), true)
    ELSE has_table_privilege(c.oid, r.privilege)
END
UNION ALL
SELECT r.thing, '', r.privilege
FROM unnest($2, $4) AS r (thing, privilege)
JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
JOIN pg_catalog.pg_proc AS p ON p.proname = r.thing AND p.pronamespace = n.oid
WHERE r.privilege = 'EXECUTE' AND NOT has_function_privilege(p.oid, r.privilege)
