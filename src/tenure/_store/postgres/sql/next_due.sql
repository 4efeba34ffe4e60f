-- $1 queues, $2 priorities, $3 now
-- The earliest run_at still ahead in these lanes, so that a claimer sleeps until then.
-- Uses job_returned_idx and job_lane_idx; locks nothing.
SELECT min(n.run_at) AS run_at, coalesce($3::timestamptz, statement_timestamp()) AS now
FROM unnest($1::text[], $2::smallint[]) AS l (queue, priority)
CROSS JOIN LATERAL (
    SELECT least(
        (
            SELECT q.run_at
            FROM /*schema.*/job AS q
            WHERE q.state = 'queued' AND q.returned AND NOT q.held
                AND q.queue = l.queue AND q.priority = l.priority
                AND q.run_at > coalesce($3, statement_timestamp())
            ORDER BY q.run_at
            LIMIT 1
        ),
        (
            SELECT q.run_at
            FROM /*schema.*/job AS q
            WHERE q.state = 'queued' AND NOT q.returned AND NOT q.held
                AND q.queue = l.queue AND q.priority = l.priority
                AND q.run_at > coalesce($3, statement_timestamp())
            ORDER BY q.run_at
            LIMIT 1
        )
    ) AS run_at
) AS n
