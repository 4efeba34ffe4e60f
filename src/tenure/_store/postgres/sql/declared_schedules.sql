-- $1 names, $2 program, $3 now
-- Read schedules by name, and all those a program declares and hasn't retired.
-- Uses schedule_pkey and schedule_program_idx; locks nothing: firing continues meanwhile.
SELECT s.*, coalesce($3::timestamptz, clock_timestamp()) AS now
FROM /*schema.*/schedule AS s
WHERE s.name = ANY ($1::text[] || ARRAY(
    SELECT p.name FROM /*schema.*/schedule AS p WHERE p.program = $2::text AND p.retired_at IS NULL
))
