-- $1 keep, $2 count, $3 now
-- Delete dead letters past their retention, with their items; bounded.
-- Uses job_failed_ended_idx; locks, skipping locked rows: one that is being retried is left.
WITH old AS MATERIALIZED (
    SELECT f.id
    FROM /*schema.*/job_failed AS f
    WHERE f.ended_at < coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY f.ended_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), items AS (
    DELETE FROM /*schema.*/job_item AS i WHERE i.job_id = ANY (ARRAY(SELECT o.id FROM old AS o))
)
DELETE FROM /*schema.*/job_failed AS f
WHERE f.id = ANY (ARRAY(SELECT o.id FROM old AS o))
RETURNING f.id
