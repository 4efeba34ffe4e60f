-- $1 ids, $2 ended_by, $3 token, $4 now
-- End dashboard sessions; only those of token $3 if it is given. No row: unknown or already over.
-- Uses dashboard_session_pkey; locks in id order, waiting.
WITH held AS MATERIALIZED (
    SELECT s.id
    FROM /*schema.*/dashboard_session AS s
    WHERE s.id = ANY ($1::bigint[])
        AND s.ended_at IS NULL
        AND s.expires_at > coalesce($4::timestamptz, statement_timestamp())
        AND ($3::bigint IS NULL OR s.token_id = $3)
    ORDER BY s.id
    FOR UPDATE
)
UPDATE /*schema.*/dashboard_session AS s SET
    ended_at = coalesce($4, clock_timestamp()),
    ended_by = $2::text
WHERE s.id = ANY (ARRAY(SELECT h.id FROM held AS h))
RETURNING s.id
