-- $1 roles
-- List the settings that sessions of these roles start with, in this database.
-- Reads the catalog; locks nothing.
SELECT
    r.rolname::text AS role,
    split_part(c.setting, '=', 1) AS name,
    substr(c.setting, strpos(c.setting, '=') + 1) AS value,
    s.setdatabase <> 0 AS here
FROM pg_catalog.pg_db_role_setting AS s
JOIN pg_catalog.pg_roles AS r ON r.oid = s.setrole
LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase
CROSS JOIN LATERAL unnest(s.setconfig) AS c (setting)
WHERE r.rolname = ANY ($1::text[])
    AND (s.setdatabase = 0 OR d.datname = current_database())
ORDER BY 1, 2, 4
