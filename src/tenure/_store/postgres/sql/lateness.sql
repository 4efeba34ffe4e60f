-- $1 most, $2 now
-- Find how long ago the first unrescued lease expired, and how long the first schedule and
-- operation chunk have been due. Count the due schedules, the active operations and their remaining
-- items, at most $1.
-- Uses job_expiry_idx, schedule_due_idx and operation_due_idx; locks nothing.
WITH due AS MATERIALIZED (
    SELECT s.next_at FROM /*schema.*/schedule AS s
    WHERE s.next_at <= coalesce($2::timestamptz, statement_timestamp())
    ORDER BY s.next_at
    LIMIT $1::integer
), working AS MATERIALIZED (
    SELECT o.next_at, o.total - o.done AS items FROM /*schema.*/operation AS o
    WHERE o.next_at > '-infinity'
    ORDER BY o.next_at
    LIMIT $1
)
SELECT
    (
        SELECT coalesce($2, statement_timestamp()) - j.lease_expires_at FROM /*schema.*/job AS j
        WHERE j.state = 'running' AND j.lease_expires_at < coalesce($2, statement_timestamp())
        ORDER BY j.lease_expires_at LIMIT 1
    ) AS lease,
    (SELECT coalesce($2, statement_timestamp()) - min(d.next_at) FROM due AS d) AS schedule,
    (SELECT count(*) FROM due AS d) AS schedules,
    (SELECT coalesce($2, statement_timestamp()) - min(w.next_at) FROM working AS w) AS operation,
    (SELECT count(*) FROM working AS w) AS operations,
    (SELECT coalesce(sum(w.items), 0) FROM working AS w) AS items_left
