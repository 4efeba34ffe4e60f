-- $1 id
-- Ask a worker to drain; it finds out at its next heartbeat. No row: unknown worker.
-- Uses worker_pkey; locks that row.
UPDATE /*schema.*/worker AS w SET drain_requested = true
WHERE w.id = $1::uuid
RETURNING w.state
