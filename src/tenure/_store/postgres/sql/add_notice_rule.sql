-- $1 name, $2 event, $3 queue, $4 task, $5 url, $6 format, $7 secret, $8 group_for, $9 threshold, $10 created_by, $11 now
-- Create a rule for notices. No row: the name is taken.
-- Uses notice_rule_pkey; locks nothing.
INSERT INTO /*schema.*/notice_rule AS r (
    name, event, queue, task, url, format, secret, group_for, threshold, created_at, created_by, changed_at
)
SELECT
    $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::interval, $9::interval,
    m.now, $10::text, m.now
FROM (SELECT coalesce($11::timestamptz, clock_timestamp()) AS now) AS m
ON CONFLICT (name) DO NOTHING
RETURNING r.name, r.event, r.queue, r.task, r.url, r.format, r.secret, r.group_for, r.threshold, r.program,
    r.created_at, r.created_by, r.changed_at
