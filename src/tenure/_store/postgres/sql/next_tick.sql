-- $1 floor, $2 now, $3 unread
-- Find when the next schedule is due, from a floor on and excluding $3, and the current time.
-- Uses schedule_due_idx; locks nothing.
SELECT
    coalesce($2::timestamptz, clock_timestamp()) AS now,
    (
        SELECT s.next_at FROM /*schema.*/schedule AS s
        WHERE s.next_at > coalesce($1::timestamptz, '-infinity') AND s.name <> ALL ($3::text[])
        ORDER BY s.next_at LIMIT 1
    ) AS next_at
