-- $1 ids, $2 tokens, $3 owners, $4 now
-- Among leases that a renewal skipped, return the busy ones: still their jobs' and either locked or
-- not expired. All others are lost.
-- Uses job_pkey; locks for a moment what is not locked, in id order, to tell which that is.
WITH free AS MATERIALIZED (
    SELECT j.id, j.lease_expires_at
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS a (id, token, claimed_by)
    JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
    ORDER BY a.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
)
SELECT j.id, j.token, j.claimed_by
FROM unnest($1, $2, $3) AS a (id, token, claimed_by)
JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
LEFT JOIN free AS f ON f.id = a.id
WHERE f.id IS NULL OR f.lease_expires_at > coalesce($4::timestamptz, clock_timestamp())
