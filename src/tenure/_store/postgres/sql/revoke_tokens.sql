-- $1 ids, $2 revoked_by, $3 children, $4 parent, $5 now
-- Revoke access tokens, and with $3 the tokens that they created; only descendants of token $4 if
-- it is given. No row: unknown or already revoked.
-- Uses api_token_pkey and api_token_parent_idx; locks in id order, waiting.
WITH RECURSIVE family AS (
    SELECT c.id FROM /*schema.*/api_token AS c WHERE c.created_by_token = $4::bigint
    UNION
    SELECT c.id
    FROM family AS f
    JOIN /*schema.*/api_token AS c ON c.created_by_token = f.id
), wanted AS (
    SELECT i.id
    FROM unnest($1::bigint[]) AS i (id)
    WHERE $4 IS NULL OR i.id = ANY (ARRAY(SELECT f.id FROM family AS f))
    UNION
    SELECT c.id
    FROM wanted AS w
    JOIN /*schema.*/api_token AS c ON c.created_by_token = w.id
    WHERE $3::boolean
), held AS MATERIALIZED (
    SELECT t.id
    FROM /*schema.*/api_token AS t
    WHERE t.id = ANY (ARRAY(SELECT w.id FROM wanted AS w)) AND t.revoked_at IS NULL
    ORDER BY t.id
    FOR UPDATE
)
UPDATE /*schema.*/api_token AS t SET
    revoked_at = coalesce($5::timestamptz, clock_timestamp()),
    revoked_by = $2::text
WHERE t.id = ANY (ARRAY(SELECT h.id FROM held AS h))
RETURNING t.id
