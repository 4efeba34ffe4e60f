-- $1 before, $2 lowest, $3 count, $4 granted
-- List operations, newest first, below an id.
-- Uses operation_pkey backwards; locks nothing.
SELECT o.*
FROM /*schema.*/operation AS o
WHERE o.id < $1::bigint AND o.id >= $2::bigint
    AND (o.filter ->> 'queue' LIKE ANY ($4::text[]) OR $4 IS NULL)
ORDER BY o.id DESC
LIMIT $3::integer
