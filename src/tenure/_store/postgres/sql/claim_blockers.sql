-- $1 names, $2 now
-- Find why a claim was empty: a limit, a pause ('*' for all), or nothing due. Also return a time
-- before the claim began: our statements take at most 10 seconds. Queues changed since then count
-- as unread, because the claim may have seen the old row.
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
