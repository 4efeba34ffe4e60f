-- $1 before, $2 count, $3 queue, $4 task, $5 signature, $6 granted, $7 largest
-- List dead letters, newest first, below an id.
-- Payload fields larger than $7 bytes of JSON are left out.
-- Uses job_failed_pkey backwards; locks nothing.
SELECT
    f.id, f.token, f.run_at, f.created_at, f.claimed_at, f.lease_expires_at, f.ended_at,
    f.claimed_by, f.items, f.priority, f.attempt, f.max_attempts, f.losses,
    f.worker_losses, f.deaths, false AS suspect, false AS held,
    false AS cancel_requested, 'failed' AS state, f.queue, f.task, f.key, f.done_reason,
    CASE
        WHEN $7::integer IS NULL
            OR pg_column_size(f.args) <= $7 AND octet_length(f.args::text) <= $7
        THEN f.args
    END AS args, NULL::jsonb AS result,
    CASE
        WHEN $7 IS NULL
            OR pg_column_size(f.cursor) <= $7 AND octet_length(f.cursor::text) <= $7
        THEN f.cursor
    END AS cursor,
    CASE
        WHEN $7 IS NULL
            OR pg_column_size(f.progress) <= $7 AND octet_length(f.progress::text) <= $7
        THEN f.progress
    END AS progress,
    f.meta
FROM /*schema.*/job_failed AS f
WHERE f.id < $1::bigint
    AND (f.queue = $3::text OR $3 IS NULL)
    AND (f.task = $4::text OR $4 IS NULL)
    AND (f.error_signature = $5::text OR $5 IS NULL)
    AND (f.queue LIKE ANY ($6::text[]) OR $6 IS NULL)
ORDER BY f.id DESC
LIMIT $2::integer
