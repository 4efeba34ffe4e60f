-- $1 ids, $2 tokens, $3 owners, $4 ttls, $5 now
-- Extend the leases that are still ours and not over. Never waits: a row that is locked is
-- answered as busy, one whose lease has another name or is over as lost.
-- Uses job_pkey; locks in id order, skipping locked rows.
WITH asked AS (
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::interval[]) AS a (id, token, claimed_by, ttl)
), held AS MATERIALIZED (
    SELECT j.id, a.ttl, j.lease_expires_at
    FROM asked AS a
    JOIN /*schema.*/job AS j ON j.id = a.id AND j.token = a.token AND j.claimed_by = a.claimed_by
    ORDER BY j.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
), renewed AS (
    UPDATE /*schema.*/job AS j SET
        lease_expires_at = coalesce($5::timestamptz, clock_timestamp()) + h.ttl,
        renewed_at = coalesce($5, clock_timestamp()),
        renewals = j.renewals + 1
    FROM held AS h
    WHERE j.id = h.id AND h.lease_expires_at > coalesce($5, clock_timestamp())
    RETURNING j.id, j.token, j.cancel_requested
)
SELECT
    a.id, a.token, coalesce(r.cancel_requested, false) AS cancel_requested,
    CASE
        WHEN r.id IS NOT NULL THEN 'renewed'
        WHEN h.id IS NOT NULL OR j.id IS NULL THEN 'lost'
        ELSE 'busy'
    END AS answer
FROM asked AS a
LEFT JOIN renewed AS r ON r.id = a.id AND r.token = a.token
LEFT JOIN held AS h ON h.id = a.id
LEFT JOIN /*schema.*/job AS j ON j.id = a.id AND j.token = a.token AND j.claimed_by = a.claimed_by
