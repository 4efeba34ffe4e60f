-- $1 id, $2 schedule, $3 fire_ats, $4 after, $5 keep
-- Freeze those of these ticks that have no job, in order and after place $4, as an operation's
-- members; without `keep`, only count them.
-- Uses schedule_tick_pkey; inserts only: locks nothing.
WITH found AS MATERIALIZED (
    SELECT n.fire_at
    FROM unnest($3::timestamptz[]) AS n (fire_at)
    WHERE (
        SELECT t.job_id
        FROM /*schema.*/schedule_tick AS t
        WHERE t.schedule = $2::text AND t.fire_at = n.fire_at
    ) IS NULL
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, fire_at)
    SELECT $1::bigint, $4::integer + row_number() OVER (ORDER BY f.fire_at), f.fire_at
    FROM found AS f
    WHERE $5::boolean
)
SELECT count(*) AS total
FROM found AS f
