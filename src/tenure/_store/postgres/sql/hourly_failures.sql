-- $1 queues, $2 now
-- For each queue, count the attempts that ended in the last hour and the hour before, and how many
-- failed, timed out or were lost, from the folded minutes.
-- Uses rollup_minute_pkey; locks nothing.
SELECT q.name AS queue, r.minute >= h.now - interval '1 hour' AS recent,
    sum(r.completed + r.failed + r.timed_out + r.lost)::bigint AS ended,
    sum(r.failed + r.timed_out + r.lost)::bigint AS failed
FROM unnest($1::text[]) AS q (name)
CROSS JOIN (SELECT coalesce($2::timestamptz, statement_timestamp()) AS now) AS h
CROSS JOIN LATERAL (
    SELECT m.minute, m.completed, m.failed, m.timed_out, m.lost FROM /*schema.*/rollup_minute AS m
    WHERE m.queue = q.name AND m.task = '' AND m.minute >= h.now - interval '2 hours'
) AS r
GROUP BY 1, 2
