-- $1 actor, $2 key, $3 digest, $4 keep, $5 now
-- Insert or lock an idempotency key's row, so a second request with the key waits for this
-- transaction. Returns the first request's digest and response (NULL if new or past its retention).
-- It writes, to be as durable as the first.
-- Uses idempotency_pkey; locks that row, waiting.
INSERT INTO /*schema.*/idempotency AS i (actor, key, digest, created_at)
VALUES ($1::text, $2::text, $3::text, coalesce($5::timestamptz, clock_timestamp()))
ON CONFLICT (actor, key) DO UPDATE SET
    digest = CASE WHEN i.created_at <= excluded.created_at - $4::interval
        THEN excluded.digest ELSE i.digest END,
    answer = CASE WHEN i.created_at <= excluded.created_at - $4 THEN NULL ELSE i.answer END,
    created_at = CASE WHEN i.created_at <= excluded.created_at - $4
        THEN excluded.created_at ELSE i.created_at END
RETURNING i.digest, i.answer
