-- $1 schema, $2 roles, $3 worker, $4 policy
-- List the rights of these roles and of PUBLIC to the schema's tables, columns, sequences and
-- functions, and which role may write audit rows of any source or has every right.
-- Reads the catalog; locks nothing.
WITH relation AS MATERIALIZED (
    SELECT c.oid, c.relname::text AS name, c.relacl, c.relrowsecurity
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'S')
), held AS (
    SELECT r.name AS thing, '' AS col, x.privilege_type AS privilege, x.grantee
    FROM relation AS r
    CROSS JOIN LATERAL aclexplode(r.relacl) AS x
    UNION ALL
    SELECT r.name, a.attname::text, x.privilege_type, x.grantee
    FROM relation AS r
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid
    CROSS JOIN LATERAL aclexplode(a.attacl) AS x
    UNION ALL
    -- Without an entry, PUBLIC may execute a function.
    SELECT p.proname::text, '', x.privilege_type, x.grantee
    FROM pg_catalog.pg_proc AS p
    JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS x
    WHERE n.nspname = $1
)
SELECT h.thing, h.col AS column, h.privilege AS right, coalesce(g.rolname::text, 'PUBLIC') AS role
FROM held AS h
LEFT JOIN pg_catalog.pg_roles AS g ON g.oid = h.grantee
WHERE h.grantee = 0 OR g.rolname = ANY ($2::text[])
UNION ALL
SELECT r.name, '', 'INSERT of any source', g.rolname::text
FROM relation AS r
JOIN pg_catalog.pg_roles AS g ON g.rolname = $3::text
WHERE r.name = 'audit' AND has_any_column_privilege(g.oid, r.oid, 'INSERT') AND NOT (
    r.relrowsecurity
    AND EXISTS (SELECT FROM pg_catalog.pg_policy AS p WHERE p.polrelid = r.oid AND p.polname = $4::text)
)
UNION ALL
SELECT '', '', 'SUPERUSER', g.rolname::text
FROM pg_catalog.pg_roles AS g
WHERE g.rolname = ANY ($2) AND (g.rolsuper OR g.rolbypassrls)
ORDER BY 4, 1, 2, 3
