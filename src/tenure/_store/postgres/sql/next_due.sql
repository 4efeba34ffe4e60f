-- $1 queues, $2 priorities, $3 returned, $4 now
-- Find the next run_at in these lanes, so a claimer can sleep until then.
-- Uses job_lane_idx; locks nothing.
SELECT min(n.run_at) AS run_at, coalesce($4::timestamptz, statement_timestamp()) AS now
FROM unnest($1::text[], $2::smallint[], $3::boolean[]) AS l (queue, priority, returned)
LEFT JOIN LATERAL (
    SELECT q.run_at
    FROM /*schema.*/job AS q
    WHERE NOT q.held AND q.state = 'queued'
        AND q.queue = l.queue AND q.priority = l.priority AND q.returned = l.returned
        AND q.run_at > coalesce($4, statement_timestamp())
    ORDER BY q.run_at
    LIMIT 1
) AS n ON true
