-- $1 names, $2 versions, $3 crons, $4 everys, $5 ats, $6 timezones, $7 tasks, $8 queues, $9 args, $10 priorities, $11 max_attempts, $12 max_losses, $13 leases, $14 targets, $15 metas, $16 missed, $17 missed_withins, $18 missed_limits, $19 overlaps, $20 jitters, $21 program, $22 program_version, $23 next_ats, $24 channel, $25 wake, $26 now
-- Write definitions: new ones, and those that replace the given version. One that already exists
-- or has another version is left alone and not returned.
-- Uses schedule_pkey; locks in name order.
WITH moment AS MATERIALIZED (
    SELECT coalesce($26::timestamptz, clock_timestamp()) AS now
), written AS (
    INSERT INTO /*schema.*/schedule AS s (
        name, cron, every, at, timezone,
        task, queue, args, priority, max_attempts, max_losses, lease, target, meta,
        missed, missed_within, missed_limit, overlap, jitter,
        program, program_version, next_at, created_at, changed_at
    )
    SELECT
        a.name, a.cron, a.every, a.at, a.timezone,
        a.task, a.queue, a.args, a.priority, a.max_attempts, a.max_losses, a.lease, a.target, a.meta,
        a.missed, a.missed_within, a.missed_limit, a.overlap, a.jitter,
        $21::text, $22::bigint[], a.next_at, m.now, m.now
    FROM moment AS m
    CROSS JOIN unnest(
        $1::text[], $3::text[], $4::interval[], $5::timestamptz[], $6::text[],
        $7::text[], $8::text[], $9::jsonb[], $10::smallint[], $11::smallint[], $12::smallint[],
        $13::interval[], $14::integer[], $15::jsonb[],
        $16::text[], $17::interval[], $18::integer[], $19::text[], $20::interval[],
        $23::timestamptz[]
    ) AS a (
        name, cron, every, at, timezone,
        task, queue, args, priority, max_attempts, max_losses, lease, target, meta,
        missed, missed_within, missed_limit, overlap, jitter, next_at
    )
    ORDER BY a.name
    ON CONFLICT (name) DO UPDATE SET
        version = s.version + 1,
        cron = excluded.cron, every = excluded.every, at = excluded.at, timezone = excluded.timezone,
        task = excluded.task, queue = excluded.queue, args = excluded.args,
        priority = excluded.priority, max_attempts = excluded.max_attempts,
        max_losses = excluded.max_losses, lease = excluded.lease, target = excluded.target,
        meta = excluded.meta, missed = excluded.missed, missed_within = excluded.missed_within,
        missed_limit = excluded.missed_limit, overlap = excluded.overlap, jitter = excluded.jitter,
        program = excluded.program, program_version = excluded.program_version,
        retired_at = NULL, next_at = excluded.next_at, changed_at = excluded.changed_at
    WHERE s.version = (
        SELECT v.version FROM unnest($1, $2::integer[]) AS v (name, version) WHERE v.name = s.name
    )
    RETURNING s.*
)
SELECT
    w.*,
    m.now,
    (
        SELECT count(pg_notify($24::text, q.queue))
        FROM unnest($25::text[]) AS q (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the change.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
FROM moment AS m
CROSS JOIN written AS w
