-- $1 before, $2 lowest, $3 count, $4 state, $5 queue, $6 task, $7 granted, $8 largest
-- List live jobs, newest first, within a range of ids, which bounds the search.
-- Payload fields larger than $8 bytes of JSON are left out.
-- Uses job_pkey backwards; locks nothing.
SELECT
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason,
    CASE
        WHEN $8::integer IS NULL
            OR pg_column_size(j.args) <= $8 AND octet_length(j.args::text) <= $8
        THEN j.args
    END AS args, NULL::jsonb AS result,
    CASE
        WHEN $8 IS NULL
            OR pg_column_size(j.cursor) <= $8 AND octet_length(j.cursor::text) <= $8
        THEN j.cursor
    END AS cursor,
    CASE
        WHEN $8 IS NULL
            OR pg_column_size(j.progress) <= $8 AND octet_length(j.progress::text) <= $8
        THEN j.progress
    END AS progress,
    j.meta
FROM /*schema.*/job AS j
WHERE j.id < $1::bigint AND j.id >= $2::bigint
    AND j.state = $4::text
    AND (j.queue = $5::text OR $5 IS NULL)
    AND (j.task = $6::text OR $6 IS NULL)
    AND (j.queue LIKE ANY ($7::text[]) OR $7 IS NULL)
ORDER BY j.id DESC
LIMIT $3::integer
