-- $1 names
-- Delete rules for notices with their groups. Their queued notices stay; workers send none of them.
-- Uses notice_rule_pkey and notice_group_pkey; locks the rules in name order, then their groups.
WITH rule AS MATERIALIZED (
    SELECT r.name FROM /*schema.*/notice_rule AS r
    WHERE r.name = ANY ($1::text[])
    ORDER BY r.name
    FOR UPDATE
), grouped AS (
    DELETE FROM /*schema.*/notice_group AS g USING rule AS r WHERE g.rule = r.name
)
DELETE FROM /*schema.*/notice_rule AS r USING rule AS o WHERE r.name = o.name
RETURNING r.name, r.event, r.queue, r.task, r.url, r.format, r.secret, r.group_for, r.threshold, r.program,
    r.created_at, r.created_by, r.changed_at
