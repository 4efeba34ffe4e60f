-- $1 after_task, $2 after_signature, $3 task, $4 count, $5 most
-- Group dead letters by task and error signature (without one: last in their task), after $1 and
-- $2, for all tasks or for $3: counted up to $5, with the first end, and the last with its error.
-- Uses job_failed_signature_idx as a loose scan, and job_failed_group_idx; locks nothing.
WITH RECURSIVE walked AS (
    SELECT $1::text AS task, $2::text AS signature, 0 AS nth
    UNION ALL
    SELECT n.task, n.signature, w.nth + 1
    FROM walked AS w
    CROSS JOIN LATERAL (
        (
            SELECT f.task, f.error_signature AS signature FROM /*schema.*/job_failed AS f
            WHERE f.task = w.task AND f.error_signature > w.signature
            ORDER BY f.error_signature LIMIT 1
        )
        UNION ALL
        (
            SELECT f.task, f.error_signature FROM /*schema.*/job_failed AS f
            WHERE w.signature IS NOT NULL AND f.task = w.task AND f.error_signature IS NULL
            LIMIT 1
        )
        UNION ALL
        (
            SELECT f.task, f.error_signature FROM /*schema.*/job_failed AS f
            WHERE $3::text IS NULL AND f.task > w.task
            ORDER BY f.task, f.error_signature LIMIT 1
        )
        LIMIT 1
    ) AS n
    WHERE w.nth < $4::integer
)
SELECT w.task, w.signature, c.count, o.ended_at AS oldest_at, l.ended_at AS newest_at,
    l.id AS sample, l.error_type, l.error_message
FROM walked AS w
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        (
            SELECT FROM /*schema.*/job_failed AS f
            WHERE f.task = w.task AND f.error_signature = w.signature LIMIT $5::integer
        )
        UNION ALL
        (
            SELECT FROM /*schema.*/job_failed AS f
            WHERE w.signature IS NULL AND f.task = w.task AND f.error_signature IS NULL LIMIT $5
        )
    ) AS g
) AS c
CROSS JOIN LATERAL (
    SELECT f.ended_at FROM /*schema.*/job_failed AS f
    WHERE f.task = w.task AND coalesce(f.error_signature, '') = coalesce(w.signature, '')
    ORDER BY f.ended_at, f.id LIMIT 1
) AS o
CROSS JOIN LATERAL (
    SELECT f.id, f.ended_at, f.error_type, f.error_message FROM /*schema.*/job_failed AS f
    WHERE f.task = w.task AND coalesce(f.error_signature, '') = coalesce(w.signature, '')
    ORDER BY f.ended_at DESC, f.id DESC LIMIT 1
) AS l
WHERE w.nth > 0
ORDER BY w.nth
