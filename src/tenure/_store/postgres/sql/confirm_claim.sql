-- $1 ids, $2 tokens, $3 owners, $4 ttls, $5 fails, $6 now
-- Confirm that these jobs are about to start: from here on, a loss counts. No row: the lease has
-- expired, and the job must not start. If $5 is true, max_losses becomes 0: a loss ends the job.
-- Uses job_pkey; locks in id order, waiting, and judges the time only after the wait.
WITH locked AS MATERIALIZED (
    SELECT j.id, j.lease_expires_at, a.ttl, a.fails
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::interval[], $5::boolean[])
        AS a (id, token, claimed_by, ttl, fails)
    JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
    ORDER BY a.id
    FOR NO KEY UPDATE OF j
)
UPDATE /*schema.*/job AS j SET
    lease_expires_at = coalesce($6::timestamptz, clock_timestamp()) + l.ttl,
    renewed_at = coalesce($6, clock_timestamp()),
    renewals = greatest(j.renewals, 0),
    max_losses = CASE WHEN l.fails THEN 0 ELSE j.max_losses END
FROM locked AS l
WHERE j.id = ANY (ARRAY[l.id]) AND l.lease_expires_at > coalesce($6, clock_timestamp())
RETURNING j.id, j.token, j.claimed_by
