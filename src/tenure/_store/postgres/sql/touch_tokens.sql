-- $1 ids, $2 now
-- Record that access tokens were used, at most once a minute.
-- Uses api_token_pkey; locks in id order, skipping locked rows: the next time will do.
WITH moment AS MATERIALIZED (
    SELECT coalesce($2::timestamptz, statement_timestamp()) AS now
), due AS MATERIALIZED (
    SELECT t.id
    FROM /*schema.*/api_token AS t
    WHERE t.id = ANY ($1::bigint[])
        AND (
            t.last_used_at IS NULL
            OR t.last_used_at <= (SELECT m.now - interval '1 minute' FROM moment AS m)
        )
    ORDER BY t.id
    FOR UPDATE SKIP LOCKED
)
UPDATE /*schema.*/api_token AS t SET last_used_at = (SELECT m.now FROM moment AS m)
WHERE t.id = ANY (ARRAY(SELECT d.id FROM due AS d))
RETURNING t.id
