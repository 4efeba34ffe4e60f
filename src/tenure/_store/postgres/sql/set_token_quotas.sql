-- $1 id, $2 quotas
-- Replace an access token's quotas; return the ones before.
-- Uses api_token_pkey; locks that row.
UPDATE /*schema.*/api_token AS t SET quotas = $2::jsonb
FROM (SELECT o.id, o.quotas FROM /*schema.*/api_token AS o WHERE o.id = $1::bigint FOR NO KEY UPDATE) AS b
WHERE t.id = ANY (ARRAY[b.id])
RETURNING b.quotas AS before
