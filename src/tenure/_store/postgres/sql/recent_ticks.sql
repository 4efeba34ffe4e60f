-- $1 within, $2 schedules, $3 ticks, $4 now
-- Count tick outcomes since $1 ago, for the first $2 schedules, at most $3 each.
-- Uses schedule_pkey and schedule_tick_pkey; locks nothing.
WITH known AS MATERIALIZED (
    SELECT s.name FROM /*schema.*/schedule AS s WHERE s.name > '' ORDER BY s.name LIMIT $2::integer
)
SELECT r.outcome, r.reason, count(*) AS count
FROM known AS k
CROSS JOIN LATERAL (
    SELECT t.outcome, t.reason FROM /*schema.*/schedule_tick AS t
    WHERE t.schedule = k.name
        AND t.fire_at > coalesce($4::timestamptz, statement_timestamp()) - $1::interval
        AND t.fire_at <= coalesce($4, statement_timestamp())
    ORDER BY t.fire_at DESC
    LIMIT $3::integer
) AS r
GROUP BY 1, 2
