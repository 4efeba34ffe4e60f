-- $1 ids
-- Which of these jobs have not ended.
-- Uses job_pkey; locks nothing.
SELECT j.id FROM /*schema.*/job AS j WHERE j.id = ANY ($1::bigint[])
