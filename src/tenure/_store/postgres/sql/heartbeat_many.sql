-- $1 ids, $2 running, $3 now
-- Renew the presence of several workers; return the known ones, and whether each should drain.
-- Uses worker_pkey; locks in id order.
WITH known AS MATERIALIZED (
    SELECT w.id, a.running
    FROM unnest($1::uuid[], $2::integer[]) AS a (id, running)
    JOIN /*schema.*/worker AS w ON w.id = ANY (ARRAY[a.id])
    ORDER BY a.id
    FOR NO KEY UPDATE OF w
)
UPDATE /*schema.*/worker AS w SET
    state = CASE WHEN w.drain_requested THEN 'draining' ELSE 'active' END,
    running = k.running,
    last_heartbeat_at = coalesce($3::timestamptz, clock_timestamp())
FROM known AS k
WHERE w.id = ANY (ARRAY[k.id])
RETURNING w.id, w.drain_requested
