-- $1 args, $2 queue, $3 task, $4 priority, $5 run_at, $6 delay, $7 max_attempts, $8 max_losses, $9 lease, $10 target, $11 meta, $12 held, $13 channel, $14 wake, $15 now
-- Enqueue jobs without a key that differ only in their arguments. Returns their ids in request
-- order, which is the order in which ids are drawn.
-- Locks nothing: inserts only.
INSERT INTO /*schema.*/job AS j (
    queue, task, args, priority, created_at, run_at,
    max_attempts, max_losses, lease, target, meta, held
)
SELECT
    $2::text, $3::text, a.args, $4::smallint, m.now,
    greatest(coalesce($5::timestamptz, m.now + $6::interval), m.now),
    coalesce(
        $7::smallint,
        (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = $2),
        (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'),
        3
    ),
    coalesce(
        $8::smallint,
        (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'),
        3
    ),
    $9::interval, $10::integer, $11::jsonb, $12::boolean
FROM (SELECT coalesce($15::timestamptz, clock_timestamp()) AS now) AS m
CROSS JOIN jsonb_array_elements($1::jsonb) AS a (args)
RETURNING
    j.id,
    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    (
        SELECT pg_notify($13::text, $2)
        WHERE $2 = ANY ($14::text[]) AND pg_notification_queue_usage() < 0.5
    ) AS woken
