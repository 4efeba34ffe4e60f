-- $1 before, $2 count, $3 active, $4 parent, $5 now
-- List access tokens, newest first, below an id; only active ones if $3; only the descendants of
-- token $4 if it is given.
-- Uses api_token_pkey backwards, and api_token_parent_idx for descendants; locks nothing.
WITH RECURSIVE family AS (
    SELECT c.id FROM /*schema.*/api_token AS c WHERE c.created_by_token = $4::bigint
    UNION
    SELECT c.id
    FROM family AS f
    JOIN /*schema.*/api_token AS c ON c.created_by_token = f.id
)
SELECT
    t.id, t.name, t.hint,
    CASE
        WHEN t.revoked_at IS NOT NULL THEN 'revoked'
        WHEN t.expires_at <= coalesce($5::timestamptz, statement_timestamp()) THEN 'expired'
        ELSE 'active'
    END AS state,
    t.scopes, t.queues, t.tasks, t.quotas, t.created_at, t.created_by,
    t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by, t.created_by_token
FROM /*schema.*/api_token AS t
WHERE t.id < $1::bigint
    AND (
        NOT $3::boolean
        OR t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > coalesce($5, statement_timestamp()))
    )
    AND ($4 IS NULL OR t.id = ANY (ARRAY(SELECT f.id FROM family AS f)))
ORDER BY t.id DESC
LIMIT $2::integer
