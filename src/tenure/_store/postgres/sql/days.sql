-- The days the archive has a partition for, newest first.
-- Reads the catalog; locks nothing.
SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day
FROM pg_catalog.pg_inherits AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = '/*schema.*/job_archive'::regclass AND NOT i.inhdetachpending
ORDER BY day DESC
