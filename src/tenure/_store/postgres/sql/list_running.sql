-- $1 before, $2 most, $3 count, $4 queue, $5 task, $6 granted, $7 largest
-- List running jobs below an id, newest first, among the $2 whose leases expire first, and count
-- those.
-- Payload fields larger than $7 bytes of JSON are left out.
-- Uses job_expiry_idx and job_pkey; locks nothing.
WITH lease AS MATERIALIZED (
    SELECT l.id, l.queue, l.task
    FROM /*schema.*/job AS l
    WHERE l.state = 'running' AND l.id < $1::bigint
    ORDER BY l.lease_expires_at
    LIMIT $2::integer
), page AS MATERIALIZED (
    SELECT p.id FROM lease AS p
    WHERE (p.queue = $4::text OR $4 IS NULL) AND (p.task = $5::text OR $5 IS NULL)
        AND (p.queue LIKE ANY ($6::text[]) OR $6 IS NULL)
    ORDER BY p.id DESC
    LIMIT $3::integer
)
SELECT h.held AS leases,
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason,
    CASE
        WHEN $7::integer IS NULL
            OR pg_column_size(j.args) <= $7 AND octet_length(j.args::text) <= $7
        THEN j.args
    END AS args, NULL::jsonb AS result,
    CASE
        WHEN $7 IS NULL
            OR pg_column_size(j.cursor) <= $7 AND octet_length(j.cursor::text) <= $7
        THEN j.cursor
    END AS cursor,
    CASE
        WHEN $7 IS NULL
            OR pg_column_size(j.progress) <= $7 AND octet_length(j.progress::text) <= $7
        THEN j.progress
    END AS progress,
    j.meta
FROM (SELECT count(*) AS held FROM lease) AS h
LEFT JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY(SELECT p.id FROM page AS p))
ORDER BY j.id DESC
