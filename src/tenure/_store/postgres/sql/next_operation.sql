-- $1 now
-- Find when an operation's next chunk is due, and the current time.
-- Uses operation_due_idx; locks nothing.
SELECT
    coalesce($1::timestamptz, clock_timestamp()) AS now,
    (
        SELECT o.next_at FROM /*schema.*/operation AS o
        WHERE o.next_at > '-infinity'
        ORDER BY o.next_at LIMIT 1
    ) AS next_at
