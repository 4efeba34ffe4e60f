-- $1 id, $2 token, $3 owner, $4 now
-- Check that the lease is still the job's, and find the newest day to file its ending under. For
-- transactions that settle last; takes no lock, so no other session waits for their work.
-- Uses job_pkey; locks nothing.
SELECT
    EXISTS (
        SELECT FROM /*schema.*/job AS j
        WHERE j.id = $1::bigint AND j.token = $2::bigint AND j.claimed_by = $3::uuid
    ) AS held,
    current_setting('transaction_isolation') AS isolation,
    (
        SELECT max(d.day)
        FROM (
            SELECT CASE WHEN c.relname ~ '_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day
            FROM pg_catalog.pg_inherits AS i
            JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent IN ('/*schema.*/attempt'::regclass, '/*schema.*/job_archive'::regclass)
                AND NOT i.inhdetachpending
            GROUP BY 1
            HAVING count(*) = 2
        ) AS d
        WHERE d.day <= (coalesce($4::timestamptz, clock_timestamp()) AT TIME ZONE 'UTC')::date
    ) AS filed_on
