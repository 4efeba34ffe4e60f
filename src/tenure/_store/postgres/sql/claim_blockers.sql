-- $1 names, $2 now
-- Why a claim came back empty: a limit, a pause ('*' for all), or nothing due. And a time at
-- which it cannot have begun yet: a statement of ours takes 10 seconds at the most. What was
-- changed since counts as unread: the claim may have seen it as it was.
-- Uses queue_pkey; locks nothing.
SELECT
    coalesce($2::timestamptz, statement_timestamp()) - interval '10 seconds' AS now,
    coalesce(bool_or(q.max_running IS NOT NULL), false) AS limited,
    array_agg(q.name) FILTER (
        WHERE q.max_running IS NOT NULL
        OR q.changed_at > coalesce($2, statement_timestamp()) - interval '10 seconds'
        OR q.paused_at IS NOT NULL
        AND coalesce(q.paused_until > coalesce($2, statement_timestamp()) - interval '10 seconds', true)
    ) AS unread
FROM /*schema.*/queue AS q
WHERE q.name = ANY ($1::text[])
