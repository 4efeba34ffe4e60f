-- $1 id, $2 chunk_limit, $3 pause, $4 now
-- Postpone an operation's next chunk and limit its size.
-- Uses operation_pkey; the operation is locked, by due_operation.
UPDATE /*schema.*/operation AS o SET
    chunk_limit = $2::integer,
    next_at = coalesce($4::timestamptz, clock_timestamp()) + $3::interval
WHERE o.id = $1::bigint
