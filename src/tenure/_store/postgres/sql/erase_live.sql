-- $1 ids
-- Delete queued jobs and their keys, and ask running ones to stop: only the holder of a lease, or
-- its end, ends a running job. Returns the running ones.
-- Uses job_pkey and job_key_pkey; locks jobs in id order, then keys, waiting.
WITH held AS MATERIALIZED (
    SELECT j.id, j.state, j.task, j.key, j.cancel_requested
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[])
    ORDER BY j.id
    FOR UPDATE
), asked AS (
    UPDATE /*schema.*/job AS j SET cancel_requested = true
    FROM held AS h
    WHERE j.id = ANY (ARRAY[h.id]) AND h.state = 'running' AND NOT h.cancel_requested
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING held AS h
    WHERE j.id = ANY (ARRAY[h.id]) AND h.state = 'queued'
), freed AS MATERIALIZED (
    SELECT k.task, k.key, h.id
    FROM held AS h
    JOIN /*schema.*/job_key AS k ON k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key])
    WHERE h.key IS NOT NULL AND h.state = 'queued'
    ORDER BY h.task, h.key
    FOR UPDATE OF k
), keys AS (
    DELETE FROM /*schema.*/job_key AS k
    USING freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
)
SELECT h.id FROM held AS h WHERE h.state = 'running'
