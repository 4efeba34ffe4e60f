-- $1 name, $2 now
-- Make sure a queue has a row, and lock it: the before of an operator's change.
-- Uses queue_pkey; locks that row, waiting.
INSERT INTO /*schema.*/queue AS q (name, changed_at)
VALUES ($1::text, coalesce($2::timestamptz, clock_timestamp()))
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING q.name, q.paused_at, q.paused_until, q.paused_by, q.paused_reason,
    q.max_running, q.lease, q.max_attempts
