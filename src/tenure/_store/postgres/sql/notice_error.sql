-- $1 ids
-- Read the error of the first of these jobs that is still a dead letter.
-- Uses job_failed_pkey; locks nothing.
SELECT f.id, f.error_type, f.error_message, f.error_signature
FROM /*schema.*/job_failed AS f
WHERE f.id = ANY ($1::bigint[])
ORDER BY f.id
LIMIT 1
