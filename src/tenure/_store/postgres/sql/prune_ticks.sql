-- $1 keep, $2 count, $3 now
-- Delete ticks past their retention, schedule by schedule, including deleted schedules. Ticks that
-- a backfill recorded for days long past are kept just as long.
-- Uses schedule_tick_pkey; locks what it deletes.
WITH RECURSIVE known AS (
    (
        SELECT t.schedule FROM /*schema.*/schedule_tick AS t
        WHERE t.schedule > '' ORDER BY t.schedule LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT t.schedule FROM /*schema.*/schedule_tick AS t
        WHERE t.schedule > k.schedule ORDER BY t.schedule LIMIT 1
    )
    FROM known AS k
    WHERE k.schedule IS NOT NULL
), old AS MATERIALIZED (
    SELECT o.schedule, o.fire_at
    FROM known AS k
    CROSS JOIN LATERAL (
        SELECT t.schedule, t.fire_at FROM /*schema.*/schedule_tick AS t
        WHERE t.schedule = k.schedule
            AND t.fire_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
            AND t.recorded_at < coalesce($3, statement_timestamp()) - $1
        ORDER BY t.fire_at
        LIMIT $2::integer
        FOR UPDATE SKIP LOCKED
    ) AS o
    LIMIT $2
)
DELETE FROM /*schema.*/schedule_tick AS t
USING old AS o
WHERE t.schedule = ANY (ARRAY[o.schedule]) AND t.fire_at = ANY (ARRAY[o.fire_at])
RETURNING t.fire_at
