-- $1 task, $2 key
-- Free a deduplication key whose job has ended, and return that job. If it is live, only return it.
-- Uses job_key_pkey; locks that row.
WITH held AS MATERIALIZED (
    SELECT k.task, k.key, k.job_id, k.expires_at
    FROM /*schema.*/job_key AS k
    WHERE k.task = $1::text AND k.key = $2::text
    FOR UPDATE
), freed AS (
    DELETE FROM /*schema.*/job_key AS k
    USING held AS h
    WHERE k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key]) AND h.expires_at IS NOT NULL
    RETURNING k.job_id
)
SELECT h.job_id, EXISTS (SELECT FROM freed) AS freed
FROM held AS h
