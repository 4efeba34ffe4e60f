-- $1 now
-- Lock the operation whose next chunk has been due the longest.
-- Uses operation_due_idx; passes over rows that another process is at, and waits for none.
SELECT o.*
FROM /*schema.*/operation AS o
WHERE o.next_at <= coalesce($1::timestamptz, statement_timestamp())
ORDER BY o.next_at
LIMIT 1
FOR UPDATE SKIP LOCKED
