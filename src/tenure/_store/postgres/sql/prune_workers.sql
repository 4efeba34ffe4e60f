-- $1 keep, $2 now
-- Delete workers that haven't sent a heartbeat for a long time.
-- Reads the whole table, which is small; locks, skipping locked rows.
DELETE FROM /*schema.*/worker AS w
WHERE w.id IN (
    SELECT o.id
    FROM /*schema.*/worker AS o
    WHERE o.last_heartbeat_at < coalesce($2::timestamptz, statement_timestamp()) - $1::interval
    FOR UPDATE SKIP LOCKED
)
RETURNING w.id
