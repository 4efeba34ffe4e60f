-- $1 ids
-- Read jobs wherever they are now: live, dead letters, archive; one snapshot, so that one that
-- is being moved is seen once.
-- Uses job_pkey, job_failed_pkey and job_archive_pkey of each day; locks nothing.
SELECT
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason, j.args, NULL::jsonb AS result, j.cursor, j.progress, j.meta
FROM /*schema.*/job AS j
WHERE j.id = ANY ($1::bigint[])
UNION ALL
SELECT
    f.id, f.token, f.run_at, f.created_at, f.claimed_at, f.lease_expires_at, f.ended_at,
    f.claimed_by, f.items, f.priority, f.attempt, f.max_attempts, f.losses,
    f.worker_losses, f.deaths, false AS suspect, false AS held,
    false AS cancel_requested, 'failed' AS state, f.queue, f.task, f.key, f.done_reason,
    f.args, NULL::jsonb AS result, f.cursor, f.progress, f.meta
FROM /*schema.*/job_failed AS f
WHERE f.id = ANY ($1)
UNION ALL
SELECT
    a.id, a.token, a.run_at, a.created_at, a.claimed_at, a.lease_expires_at, a.ended_at,
    a.claimed_by, a.items, a.priority, a.attempt, a.max_attempts, a.losses,
    0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
    false AS cancel_requested, a.state, a.queue, a.task, a.key, a.done_reason, a.args,
    a.result, a.cursor, a.progress, a.meta
FROM /*schema.*/job_archive AS a
WHERE a.id = ANY ($1)
