-- $1 job_id, $2 count
-- List the operations that include or included a job, newest first, with its outcome.
-- Uses operation_item_job_idx and operation_pkey; locks nothing.
WITH member AS MATERIALIZED (
    SELECT i.operation_id, i.outcome
    FROM (
        SELECT n.operation_id, n.outcome
        FROM /*schema.*/operation_item AS n
        WHERE n.job_id = $1::bigint
        OFFSET 0
    ) AS i
    ORDER BY i.operation_id DESC
    LIMIT $2::integer
)
SELECT o.*, m.outcome
FROM member AS m
JOIN /*schema.*/operation AS o ON o.id = ANY (ARRAY[m.operation_id])
ORDER BY m.operation_id DESC
