-- $1 queues, $2 tasks, $3 tags, $4 args
-- Delete the schedules whose jobs match, with their ticks.
-- Reads all schedules; uses schedule_tick_pkey; locks what it deletes, waiting.
WITH gone AS (
    DELETE FROM /*schema.*/schedule AS s
    WHERE (s.queue = ANY ($1::text[]) OR $1 IS NULL)
        AND (s.task = ANY ($2::text[]) OR $2 IS NULL)
        AND (s.meta -> 'tags' ?| $3::text[] OR $3 IS NULL)
        AND (s.args @> ANY ($4::jsonb[]) OR $4 IS NULL)
    RETURNING s.name
), ticks AS (
    DELETE FROM /*schema.*/schedule_tick AS t
    USING gone AS g
    WHERE t.schedule = ANY (ARRAY[g.name])
    RETURNING t.schedule
)
SELECT ARRAY(SELECT g.name FROM gone AS g) AS names, (SELECT count(*) FROM ticks) AS ticks
