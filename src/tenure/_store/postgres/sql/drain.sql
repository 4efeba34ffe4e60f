-- $1 id
-- Ask a worker to drain; its next heartbeat's answer says so. No row: unknown worker.
-- Uses worker_pkey; locks that row.
UPDATE /*schema.*/worker AS w SET drain_requested = true
WHERE w.id = $1::uuid
RETURNING w.state
