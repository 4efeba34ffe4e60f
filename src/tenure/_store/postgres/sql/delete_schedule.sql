-- $1 name
-- Remove a schedule. Its ticks stay: one made anew under the name repeats nothing.
-- Uses schedule_pkey; the row is locked already, by lock_schedules.
DELETE FROM /*schema.*/schedule AS s WHERE s.name = $1::text
