-- $1 actor, $2 key, $3 answer
-- Store the first response to a request with an idempotency key.
-- Uses idempotency_pkey; the row is locked by the caller.
UPDATE /*schema.*/idempotency AS i SET answer = $3::jsonb
WHERE i.actor = $1::text AND i.key = $2::text
