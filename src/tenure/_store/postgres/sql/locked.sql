-- $1 queues, $2 older_than, $3 count, $4 now
-- List jobs at the head of these queues' lanes that have been due for longer than this and that
-- claims skip because of an equally old row lock. Includes the locker, if known (a single one that
-- still exists).
-- Uses job_lane_idx; locks nothing.
SELECT j.id, j.queue, l.pid, a.application_name AS application, a.xact_start AS since
FROM unnest($1::text[]) AS q (name)
CROSS JOIN generate_series(0, 9) AS p (priority)
CROSS JOIN (VALUES (true), (false)) AS r (returned)
CROSS JOIN LATERAL (
    SELECT e.id, e.queue, e.xmax
    FROM /*schema.*/job AS e
    WHERE NOT e.held AND e.state = 'queued'
        AND e.queue = q.name AND e.priority = p.priority::smallint AND e.returned = r.returned
        AND e.run_at <= coalesce($4::timestamptz, statement_timestamp()) - $2::interval
    ORDER BY e.run_at, e.id
    LIMIT $3::integer
) AS j
JOIN pg_catalog.pg_locks AS l
    ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = j.xmax AND j.xmax <> '0'
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE coalesce(a.xact_start <= statement_timestamp() - $2, true)
ORDER BY j.id
LIMIT $3
