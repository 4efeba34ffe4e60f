-- List the queues with queued jobs, for claimers that serve all of them.
-- Uses job_lane_idx as a loose scan; locks nothing.
WITH RECURSIVE known (name) AS (
    (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE NOT j.held AND j.state = 'queued'
        ORDER BY j.queue
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE NOT j.held AND j.state = 'queued' AND j.queue > k.name
        ORDER BY j.queue
        LIMIT 1
    )
    FROM known AS k
    WHERE k.name IS NOT NULL
)
SELECT k.name
FROM known AS k
WHERE k.name IS NOT NULL
ORDER BY k.name
