-- $1 day, $2 before, $3 lowest, $4 count, $5 state, $6 queue, $7 task
-- Archived jobs of one day, newest first, within a stretch of ids: what is searched is bounded.
-- Uses that day's primary key backwards; locks nothing.
SELECT
    a.id, a.token, a.run_at, a.created_at, a.claimed_at, a.lease_expires_at, a.ended_at,
    a.claimed_by, a.items, a.priority, a.attempt, a.max_attempts, a.losses,
    0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
    false AS cancel_requested, a.state, a.queue, a.task, a.key, a.done_reason, a.args,
    a.result, a.cursor, a.progress, a.meta
FROM /*schema.*/job_archive AS a
WHERE a.filed_on = $1::date AND a.id < $2::bigint AND a.id >= $3::bigint
    AND a.state = $5::text
    AND (a.queue = $6::text OR $6 IS NULL)
    AND (a.task = $7::text OR $7 IS NULL)
ORDER BY a.id DESC
LIMIT $4::integer
