-- $1 ids
-- Return which of these jobs haven't ended.
-- Uses job_pkey; locks nothing.
SELECT j.id FROM /*schema.*/job AS j WHERE j.id = ANY ($1::bigint[])
