-- $1 floor, $2 now, $3 unread
-- When the next schedule is due, from a floor on and but for those in $3, and the time now.
-- Uses schedule_due_idx; locks nothing.
SELECT
    coalesce($2::timestamptz, clock_timestamp()) AS now,
    (
        SELECT s.next_at FROM /*schema.*/schedule AS s
        WHERE s.next_at > coalesce($1::timestamptz, '-infinity') AND s.name <> ALL ($3::text[])
        ORDER BY s.next_at LIMIT 1
    ) AS next_at
