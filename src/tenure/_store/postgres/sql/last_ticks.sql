-- $1 names, $2 count
-- Read each of these schedules' last recorded ticks, newest first.
-- Uses schedule_tick_pkey backwards; locks nothing.
SELECT r.schedule, r.fire_at, r.outcome, r.reason, r.job_id, r.recorded_at
FROM unnest($1::text[]) AS s (name)
CROSS JOIN LATERAL (
    SELECT t.schedule, t.fire_at, t.outcome, t.reason, t.job_id, t.recorded_at
    FROM /*schema.*/schedule_tick AS t
    WHERE t.schedule = s.name
    ORDER BY t.fire_at DESC
    LIMIT $2::integer
) AS r
