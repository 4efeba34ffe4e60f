-- $1 name, $2 after, $3 count, $4 now
-- One schedule by its name, or those above a name.
-- Uses schedule_pkey; locks nothing.
SELECT s.*, coalesce($4::timestamptz, clock_timestamp()) AS now
FROM /*schema.*/schedule AS s
WHERE s.name > $2::text AND ($1::text IS NULL OR s.name = $1)
ORDER BY s.name
LIMIT $3::integer
