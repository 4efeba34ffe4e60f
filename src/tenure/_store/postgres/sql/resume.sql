-- $1 ids
-- Release held jobs, marked as returned so they keep their age and place. No row: not held.
-- Uses job_pkey; locks in id order, waiting.
WITH waiting AS MATERIALIZED (
    SELECT j.id
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[]) AND j.held
    ORDER BY j.id
    FOR UPDATE
)
UPDATE /*schema.*/job AS j SET held = false, returned = true
FROM waiting AS w
WHERE j.id = ANY (ARRAY[w.id])
RETURNING j.id
