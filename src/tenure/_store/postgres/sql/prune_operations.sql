-- $1 keep, $2 count, $3 now
-- Delete operations past their retention whose items are gone.
-- Uses operation_ended_idx and operation_item_pkey; locks, skipping locked rows.
WITH old AS MATERIALIZED (
    SELECT o.id
    FROM /*schema.*/operation AS o
    WHERE o.ended_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
        AND (
            SELECT i.place FROM /*schema.*/operation_item AS i
            WHERE i.operation_id = o.id ORDER BY i.place LIMIT 1
        ) IS NULL
    ORDER BY o.ended_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/operation AS o
WHERE o.id = ANY (ARRAY(SELECT n.id FROM old AS n))
RETURNING o.id
