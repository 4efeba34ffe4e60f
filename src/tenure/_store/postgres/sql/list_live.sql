-- $1 before, $2 lowest, $3 count, $4 state, $5 queue, $6 task
-- Live jobs, newest first, within a stretch of ids: what is searched is bounded.
-- Uses job_pkey backwards; locks nothing.
SELECT
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason, j.args, NULL::jsonb AS result, j.cursor, j.progress, j.meta
FROM /*schema.*/job AS j
WHERE j.id < $1::bigint AND j.id >= $2::bigint
    AND j.state = $4::text
    AND (j.queue = $5::text OR $5 IS NULL)
    AND (j.task = $6::text OR $6 IS NULL)
ORDER BY j.id DESC
LIMIT $3::integer
