-- $1 count
-- List what keeps dead rows from being removed, oldest first. Other roles' transactions have an age
-- only if this role may read all statistics; slots never have one.
-- Reads statistics; locks nothing.
SELECT h.kind, h.name, h.application, h.state, h.lag::bigint AS lag, h.age
FROM (
    SELECT CASE a.backend_type WHEN 'walsender' THEN 'standby' ELSE 'session' END AS kind,
        a.pid::text AS name, a.application_name AS application, a.state,
        greatest(age(a.backend_xid), age(a.backend_xmin)) AS lag,
        statement_timestamp() - a.xact_start AS age
    FROM pg_catalog.pg_stat_activity AS a
    WHERE a.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
        AND (a.datname = current_database() OR a.datname IS NULL)
    UNION ALL
    SELECT 'slot', s.slot_name::text, s.plugin::text,
        CASE WHEN s.active THEN 'active' ELSE 'inactive' END,
        greatest(age(s.xmin), age(s.catalog_xmin)), NULL
    FROM pg_catalog.pg_replication_slots AS s
    WHERE s.database = current_database() OR s.database IS NULL
    UNION ALL
    SELECT 'prepared', x.gid, x.owner::text, 'prepared',
        age(x.transaction), statement_timestamp() - x.prepared
    FROM pg_catalog.pg_prepared_xacts AS x
    WHERE x.database = current_database()
) AS h
WHERE h.lag IS NOT NULL
ORDER BY h.lag DESC, h.age DESC NULLS LAST
LIMIT $1::integer
