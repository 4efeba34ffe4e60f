-- $1 ids
-- Lock queued jobs and dead letters for an edit, and read what it may change. No row: running,
-- ended, or no job has the id.
-- Uses job_pkey and job_failed_pkey; locks queued jobs, then dead letters, in id order, waiting.
WITH queued AS MATERIALIZED (
    SELECT j.id, j.task, j.args, j.priority, j.run_at, j.max_attempts, j.meta
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[]) AND j.state = 'queued'
    ORDER BY j.id
    FOR UPDATE
), dead AS MATERIALIZED (
    SELECT f.id, f.task, f.args, f.priority, f.run_at, f.max_attempts, f.meta
    FROM /*schema.*/job_failed AS f
    WHERE f.id = ANY ($1)
    ORDER BY f.id
    FOR UPDATE
)
SELECT true AS is_queued, q.* FROM queued AS q
UNION ALL
SELECT false AS is_queued, d.* FROM dead AS d
