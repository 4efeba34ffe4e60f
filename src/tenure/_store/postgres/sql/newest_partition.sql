-- $1 now
-- Find the newest day, up to today, for which both histories have a partition.
-- Reads the catalog; locks nothing.
SELECT max(d.day) AS day
FROM (
    SELECT CASE WHEN c.relname ~ '_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent IN ('/*schema.*/attempt'::regclass, '/*schema.*/job_archive'::regclass)
        AND NOT i.inhdetachpending
    GROUP BY 1
    HAVING count(*) = 2
) AS d
WHERE d.day <= (coalesce($1::timestamptz, clock_timestamp()) AT TIME ZONE 'UTC')::date
