-- The names of queues that have something queued, for claimers that serve all of them.
-- Uses job_lane_idx and job_returned_idx as loose scans; locks nothing.
WITH RECURSIVE fresh (name) AS (
    (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE j.state = 'queued' AND NOT j.returned AND NOT j.held
        ORDER BY j.queue
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE j.state = 'queued' AND NOT j.returned AND NOT j.held AND j.queue > f.name
        ORDER BY j.queue
        LIMIT 1
    )
    FROM fresh AS f
    WHERE f.name IS NOT NULL
), given_back (name) AS (
    (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE j.state = 'queued' AND j.returned AND NOT j.held
        ORDER BY j.queue
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue
        FROM /*schema.*/job AS j
        WHERE j.state = 'queued' AND j.returned AND NOT j.held AND j.queue > g.name
        ORDER BY j.queue
        LIMIT 1
    )
    FROM given_back AS g
    WHERE g.name IS NOT NULL
)
SELECT f.name FROM fresh AS f WHERE f.name IS NOT NULL
UNION
SELECT g.name FROM given_back AS g WHERE g.name IS NOT NULL
ORDER BY name
