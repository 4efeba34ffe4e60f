-- $1 queues, $2 most, $3 now
-- Count each queue's due, later, held and failed jobs, each up to $2, and find the age of the first
-- due one. Lanes are read one by one, so due jobs are found among later ones.
-- Uses job_lane_idx, job_held_idx and job_failed_queue_idx; locks nothing.
WITH lane AS MATERIALIZED (
    SELECT p.priority::smallint, r.returned
    FROM generate_series(0, 9) AS p (priority)
    CROSS JOIN (VALUES (true), (false)) AS r (returned)
)
SELECT q.name AS queue,
    (
        SELECT count(*) FROM (
            SELECT FROM lane AS l CROSS JOIN LATERAL (
                SELECT FROM /*schema.*/job AS j
                WHERE NOT j.held AND j.state = 'queued'
                    AND j.queue = q.name AND j.priority = l.priority AND j.returned = l.returned
                    AND j.run_at <= coalesce($3::timestamptz, statement_timestamp())
                LIMIT $2::integer
            ) AS j
            LIMIT $2
        ) AS c
    ) AS due,
    (
        SELECT count(*) FROM (
            SELECT FROM lane AS l CROSS JOIN LATERAL (
                SELECT FROM /*schema.*/job AS j
                WHERE NOT j.held AND j.state = 'queued'
                    AND j.queue = q.name AND j.priority = l.priority AND j.returned = l.returned
                    AND j.run_at > coalesce($3, statement_timestamp())
                LIMIT $2
            ) AS j
            LIMIT $2
        ) AS c
    ) AS scheduled,
    (
        SELECT coalesce($3, statement_timestamp()) - min(o.run_at) FROM lane AS l CROSS JOIN LATERAL (
            SELECT j.run_at FROM /*schema.*/job AS j
            WHERE NOT j.held AND j.state = 'queued'
                AND j.queue = q.name AND j.priority = l.priority AND j.returned = l.returned
                AND j.run_at <= coalesce($3, statement_timestamp())
            ORDER BY j.run_at
            LIMIT 1
        ) AS o
    ) AS oldest_due_age,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job AS j WHERE j.held AND j.state = 'queued' AND j.queue = q.name LIMIT $2
        ) AS c
    ) AS held,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job_failed AS f WHERE f.queue = q.name LIMIT $2
        ) AS c
    ) AS failed
FROM unnest($1::text[]) AS q (name)
ORDER BY q.name
