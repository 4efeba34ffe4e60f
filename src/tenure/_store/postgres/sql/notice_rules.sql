-- $1 names
-- List the rules for notices: all, or those with these names.
-- Reads the whole table, which is small; locks nothing.
SELECT r.name, r.event, r.queue, r.task, r.url, r.format, r.secret, r.group_for, r.threshold, r.program,
    r.created_at, r.created_by, r.changed_at
FROM /*schema.*/notice_rule AS r
WHERE $1::text[] IS NULL OR r.name = ANY ($1)
ORDER BY r.name
