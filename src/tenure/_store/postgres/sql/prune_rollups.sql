-- $1 keep, $2 count, $3 now
-- Delete per-minute counts past their retention; bounded.
-- Uses rollup_minute_minute_idx and rollup_minute_pkey; locks, skipping locked rows.
WITH old AS MATERIALIZED (
    SELECT r.minute, r.queue, r.task
    FROM /*schema.*/rollup_minute AS r
    WHERE r.minute < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY r.minute
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/rollup_minute AS r
USING old AS o
WHERE r.minute = ANY (ARRAY[o.minute]) AND r.queue = ANY (ARRAY[o.queue])
    AND r.task = ANY (ARRAY[o.task])
RETURNING r.minute
