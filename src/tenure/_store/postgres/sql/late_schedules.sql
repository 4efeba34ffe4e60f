-- $1 older_than, $2 count, $3 now
-- List schedules that have been due for longer than this, longest first.
-- Uses schedule_due_idx; locks nothing.
SELECT s.name, coalesce($3::timestamptz, statement_timestamp()) - s.next_at AS late
FROM /*schema.*/schedule AS s
WHERE s.next_at <= coalesce($3, statement_timestamp()) - $1::interval
ORDER BY s.next_at
LIMIT $2::integer
