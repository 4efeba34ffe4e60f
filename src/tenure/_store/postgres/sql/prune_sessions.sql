-- $1 keep, $2 count, $3 now
-- Delete dashboard sessions past their retention; bounded.
-- Uses dashboard_session_expires_idx; locks, skipping locked rows.
WITH old AS MATERIALIZED (
    SELECT s.id
    FROM /*schema.*/dashboard_session AS s
    WHERE s.expires_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY s.expires_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/dashboard_session AS s
WHERE s.id = ANY (ARRAY(SELECT o.id FROM old AS o))
RETURNING s.id
