-- $1 queues, $2 tasks, $3 args, $4 priorities, $5 run_ats, $6 delays, $7 max_attempts, $8 max_losses, $9 leases, $10 targets, $11 metas, $12 held, $13 keys, $14 key_fors, $15 channel, $16 wake, $17 now
-- Enqueue jobs whose keys this transaction has taken by take_keys. Their ids come from the sequence
-- alone. Returns them in request order, which is the order in which ids are drawn.
-- Uses job_key_pkey; the keys are locked, by take_keys.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce($17::timestamptz, clock_timestamp()) AS now,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'
        ), 3) AS max_attempts,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'
        ), 3) AS max_losses
), added AS (
    INSERT INTO /*schema.*/job AS j (
        queue, task, key, key_for, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta, held
    )
    SELECT
        a.queue, a.task, a.key, a.key_for, a.args, a.priority, m.now,
        greatest(coalesce(a.run_at, m.now + a.delay), m.now),
        coalesce(
            a.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = a.queue),
            m.max_attempts
        ),
        coalesce(a.max_losses, m.max_losses),
        a.lease, a.target, a.meta, a.held
    FROM moment AS m
    CROSS JOIN unnest(
        $1::text[], $2::text[], $3::jsonb[], $4::smallint[], $5::timestamptz[], $6::interval[],
        $7::smallint[], $8::smallint[], $9::interval[], $10::integer[], $11::jsonb[], $12::boolean[],
        $13::text[], $14::interval[]
    ) AS a (
        queue, task, args, priority, run_at, delay,
        max_attempts, max_losses, lease, target, meta, held, key, key_for
    )
    RETURNING j.id
), placed AS MATERIALIZED (
    SELECT n.id, ($2::text[])[n.place] AS task, ($13::text[])[n.place] AS key, n.place
    FROM (SELECT a.id, row_number() OVER (ORDER BY a.id) AS place FROM added AS a) AS n
), named AS (
    UPDATE /*schema.*/job_key AS k SET job_id = p.id
    FROM placed AS p
    WHERE k.task = ANY (ARRAY[p.task]) AND k.key = ANY (ARRAY[p.key])
)
SELECT
    p.id,
    (
        SELECT count(pg_notify($15::text, w.queue))
        FROM unnest($16::text[]) AS w (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
FROM placed AS p
ORDER BY p.place
