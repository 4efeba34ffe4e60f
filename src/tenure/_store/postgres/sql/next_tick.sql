-- $1 floor, $2 now
-- When the next schedule is due, from a floor on, and the time now. An empty answer is no row.
-- Uses schedule_due_idx; locks nothing.
SELECT
    coalesce($2::timestamptz, clock_timestamp()) AS now,
    (
        SELECT s.next_at FROM /*schema.*/schedule AS s
        WHERE s.next_at > coalesce($1::timestamptz, '-infinity')
        ORDER BY s.next_at LIMIT 1
    ) AS next_at
