-- $1 queues, $2 most, $3 now
-- Count the jobs waiting for another attempt, among $2 due and $2 later ones in each queue, and
-- report whether a queue may have more.
-- Uses job_lane_idx; locks nothing.
WITH lane AS MATERIALIZED (
    SELECT p.priority::smallint, r.returned
    FROM generate_series(0, 9) AS p (priority)
    CROSS JOIN (VALUES (true), (false)) AS r (returned)
)
SELECT coalesce(sum(c.tried), 0)::bigint AS retrying, coalesce(bool_or(c.seen >= $2::integer), false) AS more
FROM unnest($1::text[]) AS q (name)
CROSS JOIN LATERAL (
    SELECT count(*) AS seen, count(*) FILTER (WHERE d.tried) AS tried FROM (
        SELECT j.tried FROM lane AS l CROSS JOIN LATERAL (
            SELECT j.attempt > 0 OR j.deaths > 0 AS tried FROM /*schema.*/job AS j
            WHERE NOT j.held AND j.state = 'queued'
                AND j.queue = q.name AND j.priority = l.priority AND j.returned = l.returned
                AND j.run_at <= coalesce($3::timestamptz, statement_timestamp())
            LIMIT $2
        ) AS j
        LIMIT $2
    ) AS d
    UNION ALL
    SELECT count(*), count(*) FILTER (WHERE d.tried) FROM (
        SELECT j.tried FROM lane AS l CROSS JOIN LATERAL (
            SELECT j.run_at, j.attempt > 0 OR j.deaths > 0 AS tried FROM /*schema.*/job AS j
            WHERE NOT j.held AND j.state = 'queued'
                AND j.queue = q.name AND j.priority = l.priority AND j.returned = l.returned
                AND j.run_at > coalesce($3, statement_timestamp())
            ORDER BY j.run_at
            LIMIT $2
        ) AS j
        LIMIT $2
    ) AS d
) AS c
