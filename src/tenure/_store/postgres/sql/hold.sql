-- $1 ids
-- Keep queued jobs from being claimed until they are resumed. No row: not queued.
-- Uses job_pkey; locks in id order, waiting.
WITH queued AS MATERIALIZED (
    SELECT j.id
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[]) AND j.state = 'queued'
    ORDER BY j.id
    FOR UPDATE
)
UPDATE /*schema.*/job AS j SET held = true
FROM queued AS q
WHERE j.id = ANY (ARRAY[q.id])
RETURNING j.id
