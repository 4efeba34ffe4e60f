-- $1 job_id, $2 after, $3 count
-- Read a job's result items after a key, by key.
-- Uses job_item_pkey; locks nothing.
SELECT i.key, i.data
FROM /*schema.*/job_item AS i
WHERE i.job_id = $1::bigint AND i.key > $2::text
ORDER BY i.key
LIMIT $3::integer
