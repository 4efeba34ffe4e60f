-- $1 task, $2 key
-- Wait until nobody else holds this key's row: a settle skipped it as locked.
-- Uses job_key_pkey; locks that one row.
SELECT k.job_id
FROM /*schema.*/job_key AS k
WHERE k.task = $1::text AND k.key = $2::text
FOR UPDATE
