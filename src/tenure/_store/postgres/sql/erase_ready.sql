-- $1 ids, $2 count
-- Find which of these jobs no longer run, in their order.
-- Uses job_pkey; locks nothing.
SELECT n.id
FROM unnest($1::bigint[]) WITH ORDINALITY AS n (id, place)
WHERE coalesce((SELECT j.state FROM /*schema.*/job AS j WHERE j.id = n.id), '') <> 'running'
ORDER BY n.place
LIMIT $2::integer
