-- $1 count, $2 floor, $3 now, $4 unread
-- Lock due schedules: first those due within the last 5 s, then, from a floor on, those that have
-- to catch up, so a backlog of ticks doesn't make other schedules late. Those in $4 are left to
-- other schedulers.
-- Uses schedule_due_idx; skips rows that another scheduler has locked.
WITH moment AS MATERIALIZED (
    SELECT coalesce($3::timestamptz, statement_timestamp()) AS now
), fresh AS MATERIALIZED (
    SELECT s.* FROM /*schema.*/schedule AS s
    WHERE s.next_at <= (SELECT m.now FROM moment AS m)
        AND s.next_at > (SELECT m.now - interval '5 seconds' FROM moment AS m)
        AND s.name <> ALL ($4::text[])
    ORDER BY s.next_at
    LIMIT $1::integer
    FOR NO KEY UPDATE SKIP LOCKED
), behind AS MATERIALIZED (
    SELECT s.* FROM /*schema.*/schedule AS s
    WHERE s.next_at <= (SELECT m.now - interval '5 seconds' FROM moment AS m)
        AND s.next_at > coalesce($2::timestamptz, '-infinity')
        AND s.name <> ALL ($4)
    ORDER BY s.next_at
    LIMIT greatest($1 - (SELECT count(*) FROM fresh), 1)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT d.*, m.now
FROM moment AS m
CROSS JOIN (SELECT f.* FROM fresh AS f UNION ALL SELECT b.* FROM behind AS b) AS d
