-- $1 name
-- Delete a schedule. Its ticks stay, so a new one with the same name doesn't repeat them.
-- Uses schedule_pkey; the row is locked already, by lock_schedules.
DELETE FROM /*schema.*/schedule AS s WHERE s.name = $1::text
