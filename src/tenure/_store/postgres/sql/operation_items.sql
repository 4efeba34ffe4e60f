-- $1 id, $2 after, $3 until, $4 outcome, $5 count
-- List one operation's items in order, within a range of places, which bounds the search.
-- Uses operation_item_pkey; locks nothing.
SELECT i.place, i.job_id, i.fire_at, i.outcome
FROM /*schema.*/operation_item AS i
WHERE i.operation_id = $1::bigint AND i.place > $2::integer AND i.place <= $3::integer
    AND (i.outcome = $4::text OR $4 IS NULL)
ORDER BY i.place
LIMIT $5::integer
