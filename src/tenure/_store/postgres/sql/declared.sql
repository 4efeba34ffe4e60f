-- $1 names, $2 program, $3 now
-- Schedules by name, and all that a program declares and has not retired.
-- Uses schedule_pkey and schedule_program_idx; locks nothing: firing goes on meanwhile.
SELECT s.*, coalesce($3::timestamptz, clock_timestamp()) AS now
FROM /*schema.*/schedule AS s
WHERE s.name IN (
    SELECT n.name FROM unnest($1::text[]) AS n (name)
    UNION
    SELECT p.name FROM /*schema.*/schedule AS p WHERE p.program = $2::text AND p.retired_at IS NULL
)
