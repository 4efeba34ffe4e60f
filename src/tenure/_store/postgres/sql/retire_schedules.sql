-- $1 names, $2 program_version, $3 now
-- Retire schedules, recording the program version that dropped them.
-- Uses schedule_pkey; the rows are locked already, by lock_schedules.
UPDATE /*schema.*/schedule AS s SET
    retired_at = coalesce($3::timestamptz, clock_timestamp()),
    changed_at = coalesce($3, clock_timestamp()),
    next_at = NULL,
    version = s.version + 1,
    program_version = $2::bigint[]
WHERE s.name = ANY ($1::text[])
