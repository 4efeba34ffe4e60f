-- $1 id, $2 state, $3 now
-- Pause, resume or abort an operation. When resumed, its next chunk is due now.
-- Uses operation_pkey; the row is locked, by lock_operation.
UPDATE /*schema.*/operation AS o SET
    state = $2::text,
    next_at = CASE
        WHEN $2 IN ('pending', 'running') THEN coalesce($3::timestamptz, clock_timestamp())
    END,
    ended_at = CASE WHEN $2 = 'aborted' THEN coalesce($3, clock_timestamp()) END
WHERE o.id = $1::bigint
RETURNING o.*
