-- $1 id, $2 token, $3 owner, $4 ttl, $5 now
-- The holder of a suspect says that it knows of its claim, before anything begins: from here on
-- a loss counts. No row: the lease was over before the claim's answer came.
-- Uses job_pkey; locks the row, waiting, and judges the time only after the wait.
WITH locked AS MATERIALIZED (
    SELECT j.id, j.lease_expires_at
    FROM /*schema.*/job AS j
    WHERE j.id = $1::bigint AND j.token = $2::bigint AND j.claimed_by = $3::uuid
    FOR NO KEY UPDATE
)
UPDATE /*schema.*/job AS j SET
    lease_expires_at = coalesce($5::timestamptz, clock_timestamp()) + $4::interval,
    renewed_at = coalesce($5, clock_timestamp()),
    renewals = 0
FROM locked AS l
WHERE j.id = ANY (ARRAY[l.id]) AND l.lease_expires_at > coalesce($5, clock_timestamp())
RETURNING j.id
