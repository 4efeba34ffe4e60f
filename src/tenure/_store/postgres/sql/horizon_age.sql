-- Find how far vacuum is held back: by how many transactions, and for how long. Other roles'
-- transactions have an age only if this role may read all statistics; slots never have one.
-- Reads statistics; locks nothing.
SELECT coalesce(max(h.lag), 0)::bigint AS horizon,
    max(statement_timestamp() - h.since) FILTER (WHERE h.lag IS NOT NULL) AS oldest
FROM (
    SELECT greatest(age(a.backend_xid), age(a.backend_xmin)) AS lag, a.xact_start AS since
    FROM pg_catalog.pg_stat_activity AS a
    WHERE a.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
        AND (a.datname = current_database() OR a.datname IS NULL)
    UNION ALL
    SELECT greatest(age(s.xmin), age(s.catalog_xmin)), NULL
    FROM pg_catalog.pg_replication_slots AS s
    WHERE s.database = current_database() OR s.database IS NULL
    UNION ALL
    SELECT age(x.transaction), x.prepared
    FROM pg_catalog.pg_prepared_xacts AS x
    WHERE x.database = current_database()
) AS h
