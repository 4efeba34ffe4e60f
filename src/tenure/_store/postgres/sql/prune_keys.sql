-- $1 count, $2 now
-- Forget keys that are no longer held; bounded.
-- Uses job_key_until_idx; locks, skipping locked rows: one that is being taken again is left.
WITH old AS MATERIALIZED (
    SELECT k.task, k.key
    FROM /*schema.*/job_key AS k
    WHERE k.until < coalesce($2::timestamptz, statement_timestamp())
    ORDER BY k.until
    LIMIT $1::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/job_key AS k
USING old AS o
WHERE k.task = o.task AND k.key = o.key
RETURNING k.job_id
