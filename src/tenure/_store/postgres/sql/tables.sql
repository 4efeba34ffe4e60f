-- Read our tables' sizes, including indexes and partitions, and the server's estimate of their live
-- and dead rows.
-- Reads the catalog and statistics; locks nothing.
SELECT coalesce(p.relname, c.relname)::text AS name,
    sum(coalesce(pg_catalog.pg_total_relation_size(c.oid), 0))::bigint AS bytes,
    sum(pg_catalog.pg_stat_get_live_tuples(c.oid))::bigint AS live_rows,
    sum(pg_catalog.pg_stat_get_dead_tuples(c.oid))::bigint AS dead_rows
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid
LEFT JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
WHERE c.relkind = 'r' AND c.relnamespace = (
    SELECT j.relnamespace FROM pg_catalog.pg_class AS j WHERE j.oid = '/*schema.*/job'::regclass
)
GROUP BY 1
ORDER BY 1
