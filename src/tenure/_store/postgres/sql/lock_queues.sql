-- $1 names
-- Lock the rows of the queues that have a limit, before their running jobs are counted in
-- another snapshot: in one statement two claims ran where one was allowed.
-- Uses queue_pkey; locks in name order, waiting.
SELECT q.name, q.adopted
FROM /*schema.*/queue AS q
WHERE q.name = ANY ($1::text[]) AND q.max_running IS NOT NULL
ORDER BY q.name
FOR NO KEY UPDATE
