-- $1 hash, $2 now
-- Find a dashboard session by the hash of its id, even if it is over, and the hash of its token.
-- Uses dashboard_session_hash_idx and api_token_pkey; locks nothing.
SELECT
    s.id,
    CASE
        WHEN s.ended_at IS NOT NULL OR t.revoked_at IS NOT NULL THEN 'ended'
        WHEN least(s.expires_at, s.seen_at + s.idle, t.expires_at)
            <= coalesce($2::timestamptz, statement_timestamp()) THEN 'expired'
        ELSE 'active'
    END AS state,
    s.name, s.provider, s.token_id, coalesce(t.scopes, s.scopes) AS scopes,
    coalesce(t.queues, s.queues) AS queues, s.created_at, s.seen_at,
    least(s.expires_at, s.seen_at + s.idle, t.expires_at) AS ends_at,
    s.address, s.user_agent, s.ended_at, s.ended_by,
    encode(s.hash, 'hex') AS digest, encode(t.hash, 'hex') AS token_digest
FROM /*schema.*/dashboard_session AS s
LEFT JOIN /*schema.*/api_token AS t ON t.id = ANY (ARRAY[s.token_id])
WHERE s.hash = decode($1::text, 'hex')
