-- $1 names, $2 program_version
-- Record that a newer version of the program declares these schedules unchanged.
-- Uses schedule_pkey; the rows are locked already, by lock_schedules.
UPDATE /*schema.*/schedule AS s SET program_version = $2::bigint[] WHERE s.name = ANY ($1::text[])
