-- $1 before, $2 count, $3 active, $4 now
-- Access tokens, newest first, below an id; those alone that are let in, if so asked.
-- Uses api_token_pkey backwards; locks nothing.
SELECT
    t.id, t.name, t.hint,
    CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN t.expires_at <= coalesce($4::timestamptz, statement_timestamp()) THEN 'expired'
        ELSE 'active'
    END AS state,
    t.scopes, t.queues, t.created_at, t.created_by,
    t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by
FROM /*schema.*/api_token AS t
WHERE t.id < $1::bigint
    AND (
        NOT $3::boolean
        OR t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > coalesce($4, statement_timestamp()))
    )
ORDER BY t.id DESC
LIMIT $2::integer
