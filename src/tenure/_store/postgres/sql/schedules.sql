-- $1 name, $2 after, $3 count, $4 now, $5 granted
-- Read one schedule by name, or those after a name.
-- Uses schedule_pkey; locks nothing.
SELECT s.*, coalesce($4::timestamptz, clock_timestamp()) AS now
FROM /*schema.*/schedule AS s
WHERE s.name > $2::text AND ($1::text IS NULL OR s.name = $1)
    AND (s.queue LIKE ANY ($5::text[]) OR $5 IS NULL)
ORDER BY s.name
LIMIT $3::integer
