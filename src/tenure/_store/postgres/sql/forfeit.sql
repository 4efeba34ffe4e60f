-- $1 ids, $2 tokens, $3 owners, $4 now
-- Let these leases be over now, because their holder is known to be dead; a rescue then ends
-- them as it ends any that ran out.
-- Uses job_pkey; locks in id order, waiting.
WITH held AS MATERIALIZED (
    SELECT j.id
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS a (id, token, claimed_by)
    JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
    ORDER BY a.id
    FOR NO KEY UPDATE OF j
)
UPDATE /*schema.*/job AS j SET lease_expires_at = least(j.lease_expires_at, coalesce($4::timestamptz, clock_timestamp()))
FROM held AS h
WHERE j.id = ANY (ARRAY[h.id])
RETURNING j.id
