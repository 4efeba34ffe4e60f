-- $1 name, $2 paused, $3 paused_until, $4 paused_by, $5 paused_reason, $6 max_running, $7 lease, $8 max_attempts, $9 is_new_pause, $10 now, $11 quotas
-- Change a queue's row. A new or changed limit starts now and must include what is already running.
-- Uses queue_pkey; the row is locked by the caller.
UPDATE /*schema.*/queue AS q SET
    paused_at = CASE
        WHEN $2::boolean AND $9::boolean THEN coalesce($10::timestamptz, clock_timestamp())
        WHEN $2 THEN q.paused_at
    END,
    paused_until = CASE WHEN $2 THEN $3::timestamptz END,
    paused_by = CASE WHEN $2 THEN $4::text END,
    paused_reason = CASE WHEN $2 THEN $5::text END,
    max_running = $6::integer,
    limited_at = CASE
        WHEN $6 IS NULL THEN NULL
        WHEN q.max_running IS NULL THEN coalesce($10, clock_timestamp())
        ELSE q.limited_at
    END,
    adopted = CASE WHEN $6 IS NULL THEN true WHEN q.max_running IS NULL THEN false ELSE q.adopted END,
    lease = $7::interval,
    max_attempts = $8::smallint,
    quotas = $11::jsonb,
    changed_at = coalesce($10, clock_timestamp())
WHERE q.name = $1::text
RETURNING q.name, q.paused_at, q.paused_until, q.paused_by, q.paused_reason,
    q.max_running, q.lease, q.max_attempts, q.quotas
