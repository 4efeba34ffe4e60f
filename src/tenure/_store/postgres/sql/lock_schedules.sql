-- $1 names, $2 now
-- Lock schedules by name.
-- Uses schedule_pkey; locks in name order, waiting for a firing.
SELECT s.*, coalesce($2::timestamptz, clock_timestamp()) AS now
FROM /*schema.*/schedule AS s
WHERE s.name = ANY ($1::text[])
ORDER BY s.name
FOR NO KEY UPDATE
