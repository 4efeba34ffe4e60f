-- $1 queues, $2 since
-- Count each queue's completed and failed attempts from $2 on, by folded minute. A minute without
-- attempts has no row.
-- Uses rollup_minute_pkey; locks nothing.
SELECT r.queue, r.minute, r.completed, r.failed
FROM unnest($1::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT m.queue, m.minute, m.completed, m.failed + m.timed_out + m.lost AS failed
    FROM /*schema.*/rollup_minute AS m
    WHERE m.queue = q.name AND m.task = '' AND m.minute >= $2::timestamptz
) AS r
