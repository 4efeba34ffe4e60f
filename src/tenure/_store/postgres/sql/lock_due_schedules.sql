-- $1 count, $2 floor, $3 now, $4 unread
-- Lock schedules that are due: first those that fell due within 5 s, then, from a floor on, those
-- that have to catch up, so that a backlog of ticks makes no other schedule late. Those in $4
-- are left to others.
-- Uses schedule_due_idx; passes over rows that another scheduler is at, and waits for none.
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
