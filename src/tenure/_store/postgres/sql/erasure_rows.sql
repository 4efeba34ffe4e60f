-- $1 id
-- Count the rows that belong to an erasure's jobs.
-- Uses operation_item_pkey, attempt_pkey of each day and job_item_pkey; reads all keys; locks
-- nothing.
WITH erased AS MATERIALIZED (
    SELECT i.job_id FROM /*schema.*/operation_item AS i WHERE i.operation_id = $1::bigint
)
SELECT
    (SELECT count(*) FROM /*schema.*/attempt AS t WHERE t.job_id = ANY (ARRAY(SELECT e.job_id FROM erased AS e)))
        AS attempt,
    (SELECT count(*) FROM /*schema.*/job_item AS n WHERE n.job_id = ANY (ARRAY(SELECT e.job_id FROM erased AS e)))
        AS job_item,
    (SELECT count(*) FROM /*schema.*/job_key AS k WHERE k.job_id IN (SELECT e.job_id FROM erased AS e))
        AS job_key
