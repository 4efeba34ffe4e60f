-- List all known queues: those with waiting or held jobs or dead letters, with an operator's
-- settings, or served by a worker in the last few days. A worker over HTTP may claim to serve any
-- name that its token's patterns match, so of its queues only those count that the token names.
-- Uses job_lane_idx, job_held_idx and job_failed_queue_idx as loose scans, queue_pkey and
-- worker_pkey; locks nothing.
WITH RECURSIVE queued (name) AS (
    (SELECT j.queue FROM /*schema.*/job AS j WHERE NOT j.held AND j.state = 'queued' ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE NOT j.held AND j.state = 'queued' AND j.queue > k.name ORDER BY j.queue LIMIT 1
    )
    FROM queued AS k
    WHERE k.name IS NOT NULL
), held (name) AS (
    (SELECT j.queue FROM /*schema.*/job AS j WHERE j.held AND j.state = 'queued' ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE j.held AND j.state = 'queued' AND j.queue > k.name ORDER BY j.queue LIMIT 1
    )
    FROM held AS k
    WHERE k.name IS NOT NULL
), failed (name) AS (
    (SELECT f.queue FROM /*schema.*/job_failed AS f ORDER BY f.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT f.queue FROM /*schema.*/job_failed AS f WHERE f.queue > k.name ORDER BY f.queue LIMIT 1)
    FROM failed AS k
    WHERE k.name IS NOT NULL
)
SELECT n.name
FROM (
    SELECT k.name FROM queued AS k
    UNION
    SELECT k.name FROM held AS k
    UNION
    SELECT k.name FROM failed AS k
    UNION
    SELECT q.name FROM /*schema.*/queue AS q
    UNION
    SELECT unnest(coalesce(w.listed, w.queues)) FROM /*schema.*/worker AS w
) AS n
WHERE n.name IS NOT NULL AND n.name <> '*'
