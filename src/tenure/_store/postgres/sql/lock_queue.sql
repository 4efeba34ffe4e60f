-- $1 name, $2 now
-- Insert a queue's row if missing, and lock it: the state before an operator's change.
-- Uses queue_pkey; locks that row, waiting.
INSERT INTO /*schema.*/queue AS q (name, changed_at)
VALUES ($1::text, coalesce($2::timestamptz, clock_timestamp()))
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING q.name, q.paused_at, q.paused_until, q.paused_by, q.paused_reason,
    q.max_running, q.lease, q.max_attempts, q.quotas
