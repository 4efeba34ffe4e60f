-- $1 ids, $2 tokens, $3 owners, $4 ttls, $5 began, $6 now
-- Extend the leases that are still ours and not over. Never waits: no row for a lease means
-- that it is lost, or that its row is locked; busy_leases.sql tells which. The time is judged where
-- it is granted, too: a lease that ends while its neighbors are looked up is not revived. renewals
-- stays at -1 until the handler has begun ($5).
-- Uses job_pkey; locks in id order, skipping locked rows.
WITH held AS MATERIALIZED (
    SELECT j.id, a.ttl, a.began
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::interval[], $5::boolean[])
        AS a (id, token, claimed_by, ttl, began)
    JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
    WHERE j.lease_expires_at > coalesce($6::timestamptz, clock_timestamp())
    ORDER BY a.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE /*schema.*/job AS j SET
    lease_expires_at = coalesce($6, clock_timestamp()) + h.ttl,
    renewed_at = coalesce($6, clock_timestamp()),
    renewals = CASE WHEN h.began THEN greatest(j.renewals, 0) + 1 ELSE j.renewals END
FROM held AS h
WHERE j.id = ANY (ARRAY[h.id]) AND j.lease_expires_at > coalesce($6, clock_timestamp())
RETURNING j.id, j.token, j.claimed_by, j.cancel_requested
