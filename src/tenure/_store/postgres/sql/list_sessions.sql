-- $1 before, $2 count, $3 active, $4 token, $5 session, $6 now
-- List dashboard sessions, newest first, below an id; only active ones if $3; only those of token
-- $4 or session $5 if either is given.
-- Uses dashboard_session_pkey backwards and api_token_pkey; locks nothing.
SELECT
    s.id,
    CASE
        WHEN s.ended_at IS NOT NULL OR t.revoked_at IS NOT NULL THEN 'ended'
        WHEN least(s.expires_at, s.seen_at + s.idle, t.expires_at)
            <= coalesce($6::timestamptz, statement_timestamp()) THEN 'expired'
        ELSE 'active'
    END AS state,
    s.name, s.provider, s.token_id, coalesce(t.scopes, s.scopes) AS scopes,
    coalesce(t.queues, s.queues) AS queues, s.created_at, s.seen_at,
    least(s.expires_at, s.seen_at + s.idle, t.expires_at) AS ends_at,
    s.address, s.user_agent, s.ended_at, s.ended_by
FROM /*schema.*/dashboard_session AS s
LEFT JOIN /*schema.*/api_token AS t ON t.id = ANY (ARRAY[s.token_id])
WHERE s.id < $1::bigint
    AND ($4::bigint IS NULL AND $5::bigint IS NULL OR s.token_id = $4 OR s.id = $5)
    AND (
        NOT $3::boolean
        OR s.ended_at IS NULL
        AND t.revoked_at IS NULL
        AND least(s.expires_at, s.seen_at + s.idle, t.expires_at)
            > coalesce($6, statement_timestamp())
    )
ORDER BY s.id DESC
LIMIT $2::integer
