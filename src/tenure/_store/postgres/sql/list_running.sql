-- $1 before, $2 most, $3 count, $4 queue, $5 task
-- Running jobs below an id, newest first, among the $2 whose leases end first, and how many of
-- these there are.
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
    ORDER BY p.id DESC
    LIMIT $3::integer
)
SELECT h.held AS leases,
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason, j.args, NULL::jsonb AS result, j.cursor, j.progress, j.meta
FROM (SELECT count(*) AS held FROM lease) AS h
LEFT JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY(SELECT p.id FROM page AS p))
ORDER BY j.id DESC
