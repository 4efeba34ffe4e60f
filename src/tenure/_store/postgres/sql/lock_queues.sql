-- $1 names
-- Lock limited queues' rows before counting their running jobs in another snapshot: in a single
-- statement, two claims ran where one was allowed. `now` is after the wait.
-- Uses queue_pkey; locks in name order, waiting.
SELECT l.name, l.adopted, clock_timestamp() AS now
FROM (
    SELECT q.name, q.adopted
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($1::text[]) AND q.max_running IS NOT NULL
    ORDER BY q.name
    FOR NO KEY UPDATE
) AS l
