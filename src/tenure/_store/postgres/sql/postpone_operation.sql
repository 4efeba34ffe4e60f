-- $1 id, $2 chunk_limit, $3 pause, $4 now
-- Let the next chunk of an operation be due later, and take so many at the most.
-- Uses operation_pkey; the operation is locked, by due_operation.
UPDATE /*schema.*/operation AS o SET
    chunk_limit = $2::integer,
    next_at = coalesce($4::timestamptz, clock_timestamp()) + $3::interval
WHERE o.id = $1::bigint
