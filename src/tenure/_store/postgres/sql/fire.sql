-- $1 schedules, $2 versions, $3 fire_ats, $4 reasons, $5 run_ats, $6 again, $7 names, $8 name_versions, $9 next_ats, $10 last_ats, $11 channel, $12 wake, $13 now
-- Record ticks, make the jobs of those with a run_at, and move their schedules on, if a schedule
-- still has the version by which they were judged. A tick that is recorded makes nothing more;
-- with `again`, one that was skipped may still make its job.
-- Uses schedule_pkey, schedule_tick_pkey; the schedules are locked, by due or lock_schedules.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce($13::timestamptz, clock_timestamp()) AS now,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'
        ), 3) AS max_attempts,
        coalesce((
            SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'
        ), 3) AS max_losses
), asked AS MATERIALIZED (
    SELECT a.* FROM unnest(
        $1::text[], $2::integer[], $3::timestamptz[], $4::text[], $5::timestamptz[]
    ) AS a (schedule, version, fire_at, reason, run_at)
    JOIN /*schema.*/schedule AS s ON s.name = a.schedule AND s.version = a.version
), ticked AS (
    INSERT INTO /*schema.*/schedule_tick AS t (schedule, fire_at, recorded_at, job_id, outcome, reason)
    SELECT
        a.schedule, a.fire_at, m.now,
        CASE WHEN a.run_at IS NOT NULL THEN nextval('/*schema.*/job_id_seq') END,
        CASE WHEN a.run_at IS NOT NULL THEN 'fired' ELSE 'skipped' END,
        a.reason
    FROM moment AS m
    CROSS JOIN asked AS a
    ON CONFLICT (schedule, fire_at) DO UPDATE SET
        recorded_at = excluded.recorded_at,
        job_id = excluded.job_id,
        outcome = excluded.outcome,
        reason = excluded.reason
    WHERE $6::boolean AND t.job_id IS NULL
    RETURNING t.schedule, t.fire_at, t.job_id
), added AS (
    INSERT INTO /*schema.*/job (
        id, queue, task, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta
    )
    SELECT
        t.job_id, s.queue, s.task, s.args, s.priority, m.now, greatest(a.run_at, m.now),
        coalesce(
            s.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = s.queue),
            m.max_attempts
        ),
        coalesce(s.max_losses, m.max_losses),
        s.lease, s.target,
        coalesce(s.meta, '{}') || jsonb_build_object(
            'schedule', s.name,
            'tick_at', to_char(t.fire_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
        )
    FROM moment AS m
    CROSS JOIN ticked AS t
    JOIN asked AS a ON a.schedule = t.schedule AND a.fire_at = t.fire_at
    JOIN /*schema.*/schedule AS s ON s.name = t.schedule
    WHERE t.job_id IS NOT NULL
), moved AS (
    UPDATE /*schema.*/schedule AS s SET
        next_at = a.next_at,
        last_at = a.last_at,
        last_job_id = coalesce(
            (SELECT max(t.job_id) FROM ticked AS t WHERE t.schedule = s.name),
            s.last_job_id
        )
    FROM unnest($7::text[], $8::integer[], $9::timestamptz[], $10::timestamptz[])
        AS a (name, version, next_at, last_at)
    WHERE s.name = a.name AND s.version = a.version
)
SELECT
    count(*) AS ticks,
    count(t.job_id) AS jobs,
    (SELECT count(pg_notify($11::text, w.queue)) FROM unnest($12::text[]) AS w (queue)) AS woken
FROM ticked AS t
