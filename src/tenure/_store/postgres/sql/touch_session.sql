-- $1 id, $2 now
-- Record that a dashboard session is in use. An ended one stays ended.
-- Uses dashboard_session_pkey; locks, waiting.
UPDATE /*schema.*/dashboard_session AS s
SET seen_at = greatest(s.seen_at, coalesce($2::timestamptz, statement_timestamp()))
WHERE s.id = $1::bigint
    AND s.ended_at IS NULL
    AND least(s.expires_at, s.seen_at + s.idle) > coalesce($2, statement_timestamp())
RETURNING s.id
