-- $1 name, $2 hint, $3 hash, $4 scopes, $5 queues, $6 created_by, $7 expires_in, $8 now
-- Make an access token known by the hash of its secret.
-- Inserts only: locks nothing.
INSERT INTO /*schema.*/api_token AS t (
    name, hint, hash, scopes, queues, created_at, created_by, expires_at
)
SELECT
    $1::text, $2::text, decode($3::text, 'hex'), $4::text[], $5::text[], m.now, $6::text,
    m.now + $7::interval
FROM (SELECT coalesce($8::timestamptz, clock_timestamp()) AS now) AS m
RETURNING t.id, t.name, t.hint, 'active' AS state, t.scopes, t.queues, t.created_at, t.created_by,
    t.expires_at, t.last_used_at, t.revoked_at, t.revoked_by
