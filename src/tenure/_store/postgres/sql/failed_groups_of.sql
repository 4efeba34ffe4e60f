-- $1 queue, $2 task, $3 after_task, $4 after_signature, $5 count, $6 most
-- Group one queue's dead letters by task and error signature (without one: last in their task),
-- after $3 and $4, for all tasks or for $2: among $6 in the queue, with the first end, and the last
-- with its error. `searched` is how many in the queue were examined.
-- Uses job_failed_queue_idx and job_failed_pkey; locks nothing.
WITH found AS MATERIALIZED (
    SELECT f.id, f.task, f.error_signature AS signature, f.ended_at
    FROM /*schema.*/job_failed AS f
    WHERE f.queue = $1::text
    LIMIT $6::integer
), grouped AS (
    SELECT s.task, s.signature, count(*) AS count, min(s.ended_at) AS oldest_at,
        max(s.ended_at) AS newest_at, (array_agg(s.id ORDER BY s.ended_at DESC, s.id DESC))[1] AS sample
    FROM found AS s
    WHERE (s.task = $2::text OR $2 IS NULL)
        AND (
            s.task > $3::text
            OR s.task = $3 AND (s.signature > $4::text OR $4 IS NOT NULL AND s.signature IS NULL)
        )
    GROUP BY s.task, s.signature
    ORDER BY s.task, s.signature
    LIMIT $5::integer
)
SELECT g.task, g.signature, g.count, g.oldest_at, g.newest_at, g.sample, f.error_type, f.error_message,
    (SELECT count(*) FROM found) AS searched
FROM grouped AS g
JOIN /*schema.*/job_failed AS f ON f.id = ANY (ARRAY[g.sample])
ORDER BY g.task, g.signature
