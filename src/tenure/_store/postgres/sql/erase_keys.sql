-- $1 keys, $2 tasks
-- Delete keys that outlived their jobs.
-- Reads all keys; uses the primary key of each job table; locks what it deletes, waiting.
DELETE FROM /*schema.*/job_key AS k
WHERE k.key = ANY ($1::text[]) AND (k.task = ANY ($2::text[]) OR $2 IS NULL)
    AND NOT EXISTS (SELECT FROM /*schema.*/job AS j WHERE j.id = k.job_id)
    AND NOT EXISTS (SELECT FROM /*schema.*/job_failed AS f WHERE f.id = k.job_id)
    AND NOT EXISTS (SELECT FROM /*schema.*/job_archive AS a WHERE a.id = k.job_id)
RETURNING k.task
