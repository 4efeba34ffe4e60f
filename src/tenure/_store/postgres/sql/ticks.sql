-- $1 schedule, $2 before, $3 count
-- List a schedule's recorded ticks, newest first, before an instant.
-- Uses schedule_tick_pkey; locks nothing.
SELECT t.schedule, t.fire_at, t.outcome, t.reason, t.job_id, t.recorded_at
FROM /*schema.*/schedule_tick AS t
WHERE t.schedule = $1::text AND t.fire_at < coalesce($2::timestamptz, 'infinity')
ORDER BY t.fire_at DESC
LIMIT $3::integer
