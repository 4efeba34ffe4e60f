-- $1 name, $2 set_missed, $3 set_missed_within, $4 set_missed_limit, $5 set_jitter, $6 paused_at, $7 paused_until, $8 paused_by, $9 paused_reason, $10 channel, $11 wake, $12 now
-- Set an operator's overrides for a schedule; its definition stays the same.
-- Uses schedule_pkey; the row is locked already, by lock_schedules.
WITH moment AS MATERIALIZED (
    SELECT coalesce($12::timestamptz, clock_timestamp()) AS now
), steered AS (
    UPDATE /*schema.*/schedule AS s SET
        set_missed = $2::text,
        set_missed_within = $3::interval,
        set_missed_limit = $4::integer,
        set_jitter = $5::interval,
        paused_at = $6::timestamptz,
        paused_until = $7::timestamptz,
        paused_by = $8::text,
        paused_reason = $9::text,
        changed_at = m.now
    FROM moment AS m
    WHERE s.name = $1::text
    RETURNING s.*
)
SELECT
    d.*,
    m.now,
    (
        SELECT count(pg_notify($10::text, q.queue))
        FROM unnest($11::text[]) AS q (queue)
        -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the change.
        WHERE pg_notification_queue_usage() < 0.5
    ) AS woken
FROM moment AS m
CROSS JOIN steered AS d
