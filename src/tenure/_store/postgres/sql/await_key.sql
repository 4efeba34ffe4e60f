-- $1 task, $2 key
-- Wait for the lock on a key's row that a settle skipped.
-- Uses job_key_pkey; locks that one row.
SELECT k.job_id
FROM /*schema.*/job_key AS k
WHERE k.task = $1::text AND k.key = $2::text
FOR UPDATE
