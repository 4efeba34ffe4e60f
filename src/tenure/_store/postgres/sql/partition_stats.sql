-- List the tables with daily partitions: their number, first and last day, and size.
-- Reads the catalog; locks nothing.
SELECT p.relname::text AS name, count(*) AS days,
    min(to_date(right(c.relname, 8), 'YYYYMMDD')) AS first,
    max(to_date(right(c.relname, 8), 'YYYYMMDD')) AS last,
    sum(coalesce(pg_catalog.pg_total_relation_size(c.oid), 0))::bigint AS bytes
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
WHERE i.inhparent IN ('/*schema.*/attempt'::regclass, '/*schema.*/job_archive'::regclass)
    AND c.relname ~ '_[0-9]{8}$'
GROUP BY 1
ORDER BY 1
