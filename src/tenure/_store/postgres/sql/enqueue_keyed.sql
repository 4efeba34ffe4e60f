-- $1 queues, $2 tasks, $3 args, $4 priorities, $5 run_ats, $6 delays, $7 max_attempts, $8 max_losses, $9 leases, $10 targets, $11 metas, $12 held, $13 keys, $14 key_fors, $15 channel, $16 wake, $17 now
-- Enqueue jobs with a key, each (task, key) at most once per call. If a key is taken, returns the
-- job that holds it, and still writes, so the response is as durable as the job (DO NOTHING would
-- confirm what a failover can still erase).
-- Uses job_key_pkey; locks keys in (task, key) order.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'
        ), 3) AS max_attempts,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'
        ), 3) AS max_losses
), asked AS MATERIALIZED (
    SELECT nextval('/*schema.*/job_id_seq') AS id, a.*
    FROM unnest(
        $1::text[], $2::text[], $3::jsonb[], $4::smallint[], $5::timestamptz[], $6::interval[],
        $7::smallint[], $8::smallint[], $9::interval[], $10::integer[], $11::jsonb[], $12::boolean[],
        $13::text[], $14::interval[]
    ) AS a (
        queue, task, args, priority, run_at, delay,
        max_attempts, max_losses, lease, target, meta, held, key, key_for
    )
), holder AS (
    INSERT INTO /*schema.*/job_key AS k (task, key, job_id)
    SELECT a.task, a.key, a.id FROM asked AS a ORDER BY a.task, a.key
    ON CONFLICT (task, key) DO UPDATE SET
        hits = least(k.hits, 2147483646) + 1,
        job_id = CASE
            WHEN k.expires_at <= coalesce($17::timestamptz, clock_timestamp()) THEN excluded.job_id
            ELSE k.job_id
        END,
        expires_at = CASE
            WHEN k.expires_at <= coalesce($17, clock_timestamp()) THEN NULL
            ELSE k.expires_at
        END
    RETURNING k.task, k.key, k.job_id
), granted AS MATERIALIZED (
    -- Read once, after waiting for the last key.
    SELECT coalesce($17, clock_timestamp()) AS now FROM (SELECT count(*) FROM holder) AS h
), added AS (
    INSERT INTO /*schema.*/job (
        id, queue, task, key, key_for, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta, held
    )
    SELECT
        a.id, a.queue, a.task, a.key, a.key_for, a.args, a.priority, g.now,
        greatest(coalesce(a.run_at, g.now + a.delay), g.now),
        coalesce(
            a.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = a.queue),
            m.max_attempts
        ),
        coalesce(a.max_losses, m.max_losses),
        a.lease, a.target, a.meta, a.held
    FROM moment AS m
    CROSS JOIN granted AS g
    CROSS JOIN asked AS a
    WHERE a.id IN (SELECT h.job_id FROM holder AS h)
)
SELECT
    h.job_id AS id,
    h.job_id = a.id AS created,
    (
        SELECT count(pg_notify($15::text, w.queue))
        FROM unnest($16::text[]) AS w (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
FROM asked AS a
JOIN holder AS h ON h.task = a.task AND h.key = a.key
ORDER BY a.id
