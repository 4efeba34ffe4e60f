-- $1 task, $2 key, $3 job_id
-- Free a deduplication key that names a job which does not exist. Run it after free_key, in one
-- transaction: that statement has locked the key, and this one sees what was committed before.
-- Uses job_key_pkey and job_pkey; locks the key's row.
DELETE FROM /*schema.*/job_key AS k
WHERE k.task = $1::text AND k.key = $2::text AND k.job_id = $3::bigint
AND NOT EXISTS (SELECT FROM /*schema.*/job AS j WHERE j.id = $3::bigint)
RETURNING k.job_id
