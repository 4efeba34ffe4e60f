-- $1 id
-- Lock one operation, to pause, resume or abort it.
-- Uses operation_pkey; waits for the current chunk.
SELECT o.*
FROM /*schema.*/operation AS o
WHERE o.id = $1::bigint
FOR UPDATE
