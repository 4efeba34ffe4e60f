-- The queues that have a row: what an operator has set. Others have defaults.
-- Uses queue_pkey; locks nothing.
SELECT q.name, q.paused_at, q.paused_until, q.paused_by, q.paused_reason,
    q.max_running, q.lease, q.max_attempts
FROM /*schema.*/queue AS q
ORDER BY q.name
