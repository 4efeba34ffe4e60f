-- $1 count, $2 now
-- Delete one-time sign-in codes that expired; bounded.
-- Uses sign_in_code_expires_idx; locks, skipping locked rows.
WITH old AS MATERIALIZED (
    SELECT c.hash
    FROM /*schema.*/sign_in_code AS c
    WHERE c.expires_at < coalesce($2::timestamptz, statement_timestamp())
    ORDER BY c.expires_at
    LIMIT $1::integer
    FOR UPDATE SKIP LOCKED
)
DELETE FROM /*schema.*/sign_in_code AS c
WHERE c.hash = ANY (ARRAY(SELECT o.hash FROM old AS o))
RETURNING c.token_id
