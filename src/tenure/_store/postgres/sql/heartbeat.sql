-- $1 id, $2 state, $3 running, $4 meta, $5 now
-- Renew a worker's presence, and tell whether it should drain. No row: it was pruned, and registers
-- again.
-- Uses worker_pkey; locks that row.
UPDATE /*schema.*/worker AS w SET
    state = $2::text, running = $3::integer, meta = $4::jsonb,
    last_heartbeat_at = coalesce($5::timestamptz, clock_timestamp())
WHERE w.id = $1::uuid
RETURNING w.drain_requested
