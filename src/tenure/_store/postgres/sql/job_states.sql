-- $1 ids
-- Read the states of jobs from any table (live, dead letters, archive).
-- Uses job_pkey, job_failed_pkey and job_archive_pkey of each day; locks nothing.
SELECT j.id, j.state FROM /*schema.*/job AS j WHERE j.id = ANY ($1::bigint[])
UNION ALL
SELECT f.id, 'failed' FROM /*schema.*/job_failed AS f WHERE f.id = ANY ($1)
UNION ALL
SELECT a.id, a.state FROM /*schema.*/job_archive AS a WHERE a.id = ANY ($1)
