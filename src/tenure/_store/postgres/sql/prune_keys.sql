-- $1 count, $2 now
-- Delete keys that are no longer held; bounded.
-- Uses job_key_expires_idx; locks, skipping locked rows: one that is being taken again is left.
WITH old AS MATERIALIZED (
    SELECT k.ctid AS place
    FROM /*schema.*/job_key AS k
    WHERE k.expires_at < coalesce($2::timestamptz, statement_timestamp())
    ORDER BY k.expires_at
    LIMIT $1::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/job_key AS k
WHERE k.ctid = ANY (ARRAY(SELECT o.place FROM old AS o))
RETURNING k.job_id
