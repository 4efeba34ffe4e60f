-- $1 ids, $2 queue, $3 priority, $4 run_at, $5 now
-- Change queued jobs' queue, priority or time. A job that keeps its time is marked as returned, so
-- it keeps its age despite its new lane's floors. No row: not queued.
-- Uses job_pkey; locks in id order, waiting.
WITH queued AS MATERIALIZED (
    SELECT j.id
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[]) AND j.state = 'queued'
    ORDER BY j.id
    FOR UPDATE
)
UPDATE /*schema.*/job AS j SET
    queue = coalesce($2::text, j.queue),
    priority = coalesce($3::smallint, j.priority),
    run_at = CASE
        WHEN $4::timestamptz IS NULL THEN j.run_at
        ELSE greatest($4, coalesce($5::timestamptz, clock_timestamp()))
    END,
    returned = $4 IS NULL
FROM queued AS q
WHERE j.id = ANY (ARRAY[q.id])
RETURNING j.id
