-- $1 hash, $2 now
-- Find an access token by the hash of its secret, even if revoked or expired.
-- Uses api_token_hash_idx; locks nothing.
SELECT
    t.id, t.name, t.hint,
    CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN t.expires_at <= coalesce($2::timestamptz, statement_timestamp()) THEN 'expired'
        ELSE 'active'
    END AS state,
    t.scopes, t.queues, t.tasks, t.quotas, t.created_at, t.created_by,
    t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by, t.created_by_token,
    t.page_key, encode(t.hash, 'hex') AS digest
FROM /*schema.*/api_token AS t
WHERE t.hash = decode($1::text, 'hex')
