-- $1 id, $2 total, $3 now
-- Let an operation begin once it has all its members; one without members is done.
-- Uses operation_pkey; the row is its transaction's own.
UPDATE /*schema.*/operation AS o SET
    total = $2::integer,
    state = CASE WHEN $2 = 0 THEN 'done' ELSE o.state END,
    next_at = CASE WHEN $2 > 0 THEN o.next_at END,
    ended_at = CASE WHEN $2 = 0 THEN coalesce($3::timestamptz, clock_timestamp()) END
WHERE o.id = $1::bigint
RETURNING o.*
