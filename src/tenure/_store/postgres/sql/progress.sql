-- $1 id, $2 token, $3 owner, $4 ttl, $5 cursor, $6 progress, $7 item_keys, $8 items, $9 now
-- Record a progress report from the lease's holder and extend the lease, which is never shortened;
-- ignore items with a known key. A moved cursor or a new item resets both loss counters (never
-- deaths). No row: the lease is lost or expired.
-- Uses job_pkey; locks the job's row, waiting, and checks the time only after the wait.
WITH locked AS MATERIALIZED (
    SELECT j.id, j.lease_expires_at, j.cursor
    FROM /*schema.*/job AS j
    WHERE j.id = $1::bigint AND j.token = $2::bigint AND j.claimed_by = $3::uuid
    FOR NO KEY UPDATE
), held AS MATERIALIZED (
    SELECT l.id, $5::jsonb IS DISTINCT FROM l.cursor AND $5 IS NOT NULL AS moved
    FROM locked AS l
    WHERE l.lease_expires_at > coalesce($9::timestamptz, clock_timestamp())
), added AS (
    INSERT INTO /*schema.*/job_item (job_id, key, data)
    SELECT h.id, i.key, i.data
    FROM held AS h
    CROSS JOIN unnest($7::text[], $8::jsonb[]) AS i (key, data)
    ON CONFLICT (job_id, key) DO NOTHING
    RETURNING key
)
UPDATE /*schema.*/job AS j SET
    cursor = coalesce($5, j.cursor),
    progress = coalesce(j.progress, '{}') || $6::jsonb
        || jsonb_build_object('at', coalesce($9, clock_timestamp())),
    items = j.items + (SELECT count(*) FROM added),
    losses = CASE WHEN h.moved OR EXISTS (SELECT FROM added) THEN 0 ELSE j.losses END,
    worker_losses = CASE WHEN h.moved OR EXISTS (SELECT FROM added) THEN 0 ELSE j.worker_losses END,
    renewals = greatest(j.renewals, 0),
    renewed_at = coalesce($9, clock_timestamp()),
    lease_expires_at = greatest(j.lease_expires_at, coalesce($9, clock_timestamp()) + $4::interval)
FROM held AS h
WHERE j.id = ANY (ARRAY[h.id])
RETURNING j.id, j.cancel_requested, j.items, (SELECT count(*) FROM added) AS added,
    coalesce(j.items >= j.target, false) AS reached
