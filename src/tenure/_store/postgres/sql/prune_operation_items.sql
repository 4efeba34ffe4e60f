-- $1 keep, $2 count, $3 now
-- Delete items of operations past their retention; bounded.
-- Uses operation_ended_idx and operation_item_pkey; locks what it deletes.
WITH old AS MATERIALIZED (
    SELECT i.operation_id, i.place
    FROM /*schema.*/operation AS o
    CROSS JOIN LATERAL (
        SELECT n.operation_id, n.place
        FROM /*schema.*/operation_item AS n
        WHERE n.operation_id = o.id
        ORDER BY n.place
        LIMIT $2::integer
        FOR UPDATE SKIP LOCKED
    ) AS i
    WHERE o.ended_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    LIMIT $2
)
DELETE FROM /*schema.*/operation_item AS i
USING old AS o
WHERE i.operation_id = ANY (ARRAY[o.operation_id]) AND i.place = ANY (ARRAY[o.place])
RETURNING i.place
