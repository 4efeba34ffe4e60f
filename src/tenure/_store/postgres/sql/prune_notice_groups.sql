-- $1 keep, $2 count, $3 now
-- Delete groups of notices whose last notice is long past. The next event makes a new one.
-- Uses notice_group_due_idx; locks, skipping locked rows.
WITH old AS MATERIALIZED (
    SELECT g.rule, g.key
    FROM /*schema.*/notice_group AS g
    WHERE g.due_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY g.due_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/notice_group AS g
USING old AS o
WHERE g.rule = o.rule AND g.key = o.key
RETURNING g.key
