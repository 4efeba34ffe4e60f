-- $1 before, $2 count, $3 queue, $4 task, $5 signature
-- Dead letters, newest first, below an id.
-- Uses job_failed_pkey backwards; locks nothing.
SELECT
    f.id, f.token, f.run_at, f.created_at, f.claimed_at, f.lease_expires_at, f.ended_at,
    f.claimed_by, f.items, f.priority, f.attempt, f.max_attempts, f.losses,
    f.worker_losses, f.deaths, false AS suspect, false AS held,
    false AS cancel_requested, 'failed' AS state, f.queue, f.task, f.key, f.done_reason,
    f.args, NULL::jsonb AS result, f.cursor, f.progress, f.meta
FROM /*schema.*/job_failed AS f
WHERE f.id < $1::bigint
    AND (f.queue = $3::text OR $3 IS NULL)
    AND (f.task = $4::text OR $4 IS NULL)
    AND (f.error_signature = $5::text OR $5 IS NULL)
ORDER BY f.id DESC
LIMIT $2::integer
