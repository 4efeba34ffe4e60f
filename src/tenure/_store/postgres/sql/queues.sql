-- List the queues that have a row because operators configured them. Others use the defaults.
-- Uses queue_pkey; locks nothing.
SELECT q.name, q.paused_at, q.paused_until, q.paused_by, q.paused_reason,
    q.max_running, q.lease, q.max_attempts, q.quotas
FROM /*schema.*/queue AS q
ORDER BY q.name
