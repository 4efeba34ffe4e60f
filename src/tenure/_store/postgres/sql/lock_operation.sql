-- $1 id
-- Lock one operation, to steer it.
-- Uses operation_pkey; waits for the chunk that is being done.
SELECT o.*
FROM /*schema.*/operation AS o
WHERE o.id = $1::bigint
FOR UPDATE
