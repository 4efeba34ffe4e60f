-- $1 ids
-- Find which of these jobs still exist, in one snapshot: a job that moved from one table to another
-- between the statements of an erasure is found here.
-- Uses job_pkey, job_failed_pkey and job_archive_pkey of each day; locks nothing.
SELECT j.id FROM /*schema.*/job AS j WHERE j.id = ANY ($1::bigint[])
UNION ALL
SELECT f.id FROM /*schema.*/job_failed AS f WHERE f.id = ANY ($1)
UNION ALL
SELECT a.id FROM /*schema.*/job_archive AS a WHERE a.id = ANY ($1)
