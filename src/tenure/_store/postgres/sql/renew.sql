-- $1 ids, $2 tokens, $3 owners, $4 ttls, $5 began, $6 now
-- Extend the leases that are still ours and haven't expired. Never waits: no row means that the
-- lease is lost or its row locked, and busy_leases.sql tells which. The time is checked again on
-- write, so a lease that expires during the lookup isn't revived. A longer lease, which a report
-- has named, isn't shortened. renewals stays at -1 until the handler has begun ($5).
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
    lease_expires_at = greatest(j.lease_expires_at, coalesce($6, clock_timestamp()) + h.ttl),
    renewed_at = coalesce($6, clock_timestamp()),
    renewals = CASE WHEN h.began THEN greatest(j.renewals, 0) + 1 ELSE j.renewals END
FROM held AS h
WHERE j.id = ANY (ARRAY[h.id]) AND j.lease_expires_at > coalesce($6, clock_timestamp())
RETURNING j.id, j.token, j.claimed_by, j.cancel_requested
