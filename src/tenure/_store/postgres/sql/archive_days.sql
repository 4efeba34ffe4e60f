-- $1 now
-- List the days that have begun and have an archive partition, newest first.
-- Reads the catalog; locks nothing.
SELECT d.day
FROM (
    SELECT CASE WHEN c.relname ~ '_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = '/*schema.*/job_archive'::regclass AND NOT i.inhdetachpending
) AS d
WHERE d.day <= (coalesce($1::timestamptz, clock_timestamp()) AT TIME ZONE 'UTC')::date
ORDER BY d.day DESC
