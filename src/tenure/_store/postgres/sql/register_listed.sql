-- $1 id, $2 name, $3 host, $4 pid, $5 version, $6 language, $7 queues, $8 slots, $9 now, $10 listed
-- Register a worker, of whose queues only $10 are known without a job in them.
-- Uses worker_pkey; locks that row.
INSERT INTO /*schema.*/worker AS w (
    id, name, host, pid, version, language, state, queues, slots, started_at, last_heartbeat_at,
    listed
)
VALUES (
    $1::uuid, $2::text, $3::text, $4::integer, $5::text, $6::text, 'active', $7::text[], $8::integer,
    coalesce($9::timestamptz, clock_timestamp()), coalesce($9, clock_timestamp()), $10::text[]
)
ON CONFLICT (id) DO UPDATE SET state = 'active', queues = excluded.queues, slots = excluded.slots,
    listed = excluded.listed, last_heartbeat_at = excluded.last_heartbeat_at
