-- $1 name, $2 hint, $3 hash, $4 scopes, $5 queues, $6 created_by, $7 expires_in, $8 parent, $9 now, $10 tasks, $11 quotas
-- Insert an access token by the hash of its secret. It ends with its parent, if it has one. No row:
-- the parent is not active.
-- Uses api_token_pkey; locks the parent, so that a revoke sees the child.
WITH moment AS MATERIALIZED (
    SELECT coalesce($9::timestamptz, clock_timestamp()) AS now
), parent AS MATERIALIZED (
    SELECT p.id, p.expires_at
    FROM /*schema.*/api_token AS p, moment AS m
    WHERE p.id = $8::bigint
        AND p.revoked_at IS NULL
        AND (p.expires_at IS NULL OR p.expires_at > m.now)
    FOR SHARE OF p
)
INSERT INTO /*schema.*/api_token AS t (
    name, hint, hash, scopes, queues, created_at, created_by, expires_at, created_by_token,
    tasks, quotas
)
SELECT
    $1::text, $2::text, decode($3::text, 'hex'), $4::text[], $5::text[], m.now, $6::text,
    least(m.now + $7::interval, p.expires_at), p.id, $10::text[], $11::jsonb
FROM moment AS m
LEFT JOIN parent AS p ON true
WHERE $8 IS NULL OR p.id IS NOT NULL
RETURNING t.id, t.name, t.hint, 'active' AS state, t.scopes, t.queues, t.tasks, t.quotas, t.created_at, t.created_by,
    t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by, t.created_by_token
