-- $1 hash, $2 token, $3 lifetime, $4 now
-- Insert a one-time sign-in code by its hash. No row: the token is not active.
-- Uses api_token_pkey; locks nothing.
INSERT INTO /*schema.*/sign_in_code AS c (hash, token_id, created_at, expires_at)
SELECT decode($1::text, 'hex'), t.id, m.now, m.now + $3::interval
FROM (SELECT coalesce($4::timestamptz, clock_timestamp()) AS now) AS m
JOIN /*schema.*/api_token AS t ON t.id = $2::bigint
WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > m.now)
RETURNING c.expires_at
