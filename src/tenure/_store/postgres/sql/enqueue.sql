-- $1 queues, $2 tasks, $3 args, $4 priorities, $5 run_ats, $6 delays, $7 max_attempts, $8 max_losses, $9 leases, $10 targets, $11 metas, $12 held, $13 channel, $14 wake, $15 now
-- Enqueue jobs without a key. Returns their ids in request order, which is the order in which ids
-- are drawn.
-- Locks nothing: inserts only.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce($15::timestamptz, clock_timestamp()) AS now,
        EXISTS (
            SELECT FROM /*schema.*/queue AS q WHERE q.name = ANY ($1::text[]) AND q.max_attempts IS NOT NULL
        ) AS queues_differ,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'
        ), 3) AS max_attempts,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'
        ), 3) AS max_losses
)
INSERT INTO /*schema.*/job AS j (
    queue, task, args, priority, created_at, run_at,
    max_attempts, max_losses, lease, target, meta, held
)
SELECT
    a.queue, a.task, a.args, a.priority, m.now,
    greatest(coalesce(a.run_at, m.now + a.delay), m.now),
    coalesce(
        a.max_attempts,
        CASE WHEN m.queues_differ THEN (
            SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = a.queue
        ) END,
        m.max_attempts
    ),
    coalesce(a.max_losses, m.max_losses),
    a.lease, a.target, a.meta, a.held
FROM moment AS m
CROSS JOIN unnest(
    $1, $2::text[], $3::jsonb[], $4::smallint[], $5::timestamptz[], $6::interval[],
    $7::smallint[], $8::smallint[], $9::interval[], $10::integer[], $11::jsonb[], $12::boolean[]
) AS a (
    queue, task, args, priority, run_at, delay, max_attempts, max_losses, lease, target, meta, held
)
RETURNING
    j.id,
    true AS created,
    (
        SELECT count(pg_notify($13::text, w.queue))
        FROM unnest($14::text[]) AS w (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
