-- $1 ids, $2 revoked_by, $3 now
-- Let access tokens in no more. No row for an id: there is none, or it was revoked before.
-- Uses api_token_pkey; locks in id order, waiting.
WITH held AS MATERIALIZED (
    SELECT t.id
    FROM /*schema.*/api_token AS t
    WHERE t.id = ANY ($1::bigint[]) AND t.revoked_at IS NULL
    ORDER BY t.id
    FOR UPDATE
)
UPDATE /*schema.*/api_token AS t SET
    revoked_at = coalesce($3::timestamptz, clock_timestamp()),
    revoked_by = $2::text
WHERE t.id = ANY (ARRAY(SELECT h.id FROM held AS h))
RETURNING t.id
