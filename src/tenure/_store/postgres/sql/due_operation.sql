-- $1 now
-- Lock the operation whose next chunk has been due the longest.
-- Uses operation_due_idx; skips rows that another process has locked.
SELECT o.*
FROM /*schema.*/operation AS o
WHERE o.next_at <= coalesce($1::timestamptz, statement_timestamp())
ORDER BY o.next_at
LIMIT 1
FOR UPDATE SKIP LOCKED
