-- $1 schedules, $2 versions, $3 fire_ats, $4 reasons, $5 run_ats, $6 lasts, $7 next_ats, $8 again, $9 channel, $10 wake, $11 now
-- Record ticks, create jobs for those with a run_at, and advance each schedule with its last tick,
-- if it still has the version used to decide them. A recorded tick creates nothing more; with
-- `again`, a skipped one may still create its job.
-- Uses schedule_pkey, schedule_tick_pkey; the schedules are locked, by due or lock_schedules.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce($11::timestamptz, clock_timestamp()) AS now,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'
        ), 3) AS max_attempts,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'
        ), 3) AS max_losses
), asked AS MATERIALIZED (
    SELECT
        a.*,
        CASE WHEN a.run_at IS NOT NULL THEN nextval('/*schema.*/job_id_seq') END AS job_id,
        s.queue, s.task, s.args, s.priority, s.max_attempts, s.max_losses, s.lease, s.target, s.meta
    FROM unnest(
        $1::text[], $2::integer[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::boolean[],
        $7::timestamptz[]
    ) AS a (schedule, version, fire_at, reason, run_at, last, next_at)
    JOIN /*schema.*/schedule AS s ON s.name = ANY (ARRAY[a.schedule]) AND s.version = a.version
), ticked AS (
    INSERT INTO /*schema.*/schedule_tick AS t (schedule, fire_at, recorded_at, job_id, outcome, reason)
    SELECT
        a.schedule, a.fire_at, m.now, a.job_id,
        CASE WHEN a.job_id IS NOT NULL THEN 'fired' ELSE 'skipped' END,
        a.reason
    FROM moment AS m
    CROSS JOIN asked AS a
    ON CONFLICT (schedule, fire_at) DO UPDATE SET
        recorded_at = excluded.recorded_at,
        job_id = excluded.job_id,
        outcome = excluded.outcome,
        reason = excluded.reason
    WHERE $8::boolean AND t.job_id IS NULL
    RETURNING t.job_id, t.fire_at
), told AS MATERIALIZED (
    -- IS TRUE makes it a hash lookup; a join would go row by row.
    SELECT a.*, (a.job_id IN (SELECT t.job_id FROM ticked AS t)) IS TRUE AS made FROM asked AS a
), added AS (
    INSERT INTO /*schema.*/job (
        id, queue, task, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta
    )
    SELECT
        a.job_id, a.queue, a.task, a.args, a.priority, m.now, greatest(a.run_at, m.now),
        coalesce(
            a.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = a.queue),
            m.max_attempts
        ),
        coalesce(a.max_losses, m.max_losses),
        a.lease, a.target,
        coalesce(a.meta, '{}') || jsonb_build_object(
            'schedule', a.schedule,
            'tick_at', to_char(a.fire_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
        )
    FROM moment AS m
    CROSS JOIN told AS a
    WHERE a.made
), moved AS (
    UPDATE /*schema.*/schedule AS s SET
        next_at = a.next_at,
        last_at = a.fire_at,
        last_job_id = coalesce(a.last_job_id, s.last_job_id)
    FROM (
        SELECT
            t.schedule, t.fire_at, t.last, t.next_at,
            max(t.job_id) FILTER (WHERE t.made) OVER (PARTITION BY t.schedule) AS last_job_id
        FROM told AS t
    ) AS a
    WHERE a.last AND s.name = ANY (ARRAY[a.schedule])
)
SELECT
    count(*) AS ticks,
    count(t.job_id) AS jobs,
    array_agg(t.fire_at) AS fired,
    array_agg(t.job_id) AS made,
    (
        SELECT count(pg_notify($9::text, w.queue))
        FROM unnest($10::text[]) AS w (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
FROM ticked AS t
