-- $1 keep, $2 count, $3 now
-- Delete idempotency keys' stored responses past their retention; bounded.
-- Uses idempotency_created_idx; locks, skipping locked rows: a key in use again is left.
WITH old AS MATERIALIZED (
    SELECT i.ctid AS place
    FROM /*schema.*/idempotency AS i
    WHERE i.created_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY i.created_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/idempotency AS i
WHERE i.ctid = ANY (ARRAY(SELECT o.place FROM old AS o))
RETURNING i.key
