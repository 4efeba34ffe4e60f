-- $1 worker, $2 queue, $3 most, $4 count, $5 now, $6 granted
-- List running jobs' leases, those that expire first at the front: for a worker, a queue, or all,
-- among the $3 that expire first.
-- Uses job_expiry_idx; locks nothing.
SELECT r.id, r.queue, r.task, r.attempt, r.max_attempts, r.claimed_by, r.claimed_at, r.renewals,
    r.lease_expires_at, r.cancel_requested,
    r.lease_expires_at - coalesce(r.renewed_at, r.claimed_at) AS length,
    r.lease_expires_at - coalesce($5::timestamptz, statement_timestamp()) AS remaining
FROM (
    SELECT j.id, j.queue, j.task, j.attempt, j.max_attempts, j.claimed_by, j.claimed_at, j.renewed_at,
        greatest(j.renewals, 0) AS renewals, j.lease_expires_at, j.cancel_requested
    FROM /*schema.*/job AS j
    WHERE j.state = 'running'
    ORDER BY j.lease_expires_at
    LIMIT $3::integer
) AS r
WHERE (r.claimed_by = $1::uuid OR $1 IS NULL) AND (r.queue = $2::text OR $2 IS NULL)
    AND (r.queue LIKE ANY ($6::text[]) OR $6 IS NULL)
ORDER BY r.lease_expires_at, r.id
LIMIT $4::integer
