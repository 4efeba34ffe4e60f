-- $1 rule, $2 channel, $3 now
-- Enqueue a test of a rule, which is due now. No row: there is no such rule.
-- Uses notice_rule_pkey; locks nothing.
INSERT INTO /*schema.*/job AS j (queue, task, args, priority, created_at, run_at, max_attempts, max_losses)
SELECT
    'tenure.notices', 'tenure.notice',
    jsonb_build_object(
        'rule', r.name, 'event', 'test', 'group', 'test', 'count', 1,
        'first_at', to_char(m.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'last_at', to_char(m.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ),
    5, m.now, m.now, 3, 3
FROM /*schema.*/notice_rule AS r
CROSS JOIN (SELECT coalesce($3::timestamptz, clock_timestamp()) AS now) AS m
WHERE r.name = $1::text
RETURNING
    j.id,
    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    CASE WHEN pg_notification_queue_usage() < 0.5 THEN pg_notify($2::text, j.queue) END AS woken
