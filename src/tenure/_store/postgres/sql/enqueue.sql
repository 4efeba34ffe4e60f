-- $1 queues, $2 tasks, $3 args, $4 priorities, $5 run_ats, $6 delays, $7 max_attempts, $8 max_losses, $9 leases, $10 targets, $11 metas, $12 held, $13 channel, $14 wake, $15 now
-- Put jobs without a key into their queues; answers with their ids in the order asked.
-- Locks nothing: inserts only. Ids are drawn in the order of the arrays.
WITH asked AS MATERIALIZED (
    SELECT nextval('/*schema.*/job_id_seq') AS id, a.*
    FROM unnest(
        $1::text[], $2::text[], $3::jsonb[], $4::smallint[], $5::timestamptz[], $6::interval[],
        $7::smallint[], $8::smallint[], $9::interval[], $10::integer[], $11::jsonb[], $12::boolean[]
    ) AS a (
        queue, task, args, priority, run_at, delay,
        max_attempts, max_losses, lease, target, meta, held
    )
), added AS (
    INSERT INTO /*schema.*/job (
        id, queue, task, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta, held
    )
    SELECT
        a.id, a.queue, a.task, a.args, a.priority,
        coalesce($15::timestamptz, clock_timestamp()),
        greatest(
            coalesce(a.run_at, coalesce($15, clock_timestamp()) + a.delay),
            coalesce($15, clock_timestamp())
        ),
        coalesce(
            a.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = a.queue),
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'),
            3
        ),
        coalesce(
            a.max_losses,
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'),
            3
        ),
        a.lease, a.target, a.meta, a.held
    FROM asked AS a
)
SELECT
    a.id,
    true AS created,
    (SELECT count(pg_notify($13::text, w.queue)) FROM unnest($14::text[]) AS w (queue)) AS woken
FROM asked AS a
ORDER BY a.id
