-- $1 id
-- Delete the stored responses that name jobs of an erasure and no other job.
-- Reads all responses; uses operation_item_job_idx; locks what it deletes, waiting.
DELETE FROM /*schema.*/idempotency AS i
WHERE jsonb_typeof(i.answer) = 'array' AND (
    SELECT bool_and(EXISTS (
        SELECT FROM /*schema.*/operation_item AS n
        WHERE n.operation_id = $1::bigint AND n.job_id = ANY (ARRAY[(a.pair ->> 0)::bigint])
    ))
    FROM jsonb_array_elements(i.answer) AS a (pair)
)
RETURNING i.actor
