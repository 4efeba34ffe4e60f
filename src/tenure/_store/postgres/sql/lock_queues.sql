-- $1 names
-- Lock the rows of the queues that have a limit, before their running jobs are counted in
-- another snapshot: in one statement two claims ran where one was allowed. `now` is after the wait.
-- Uses queue_pkey; locks in name order, waiting.
SELECT l.name, l.adopted, clock_timestamp() AS now
FROM (
    SELECT q.name, q.adopted
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($1::text[]) AND q.max_running IS NOT NULL
    ORDER BY q.name
    FOR NO KEY UPDATE
) AS l
