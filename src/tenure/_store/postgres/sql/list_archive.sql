-- $1 day, $2 before, $3 lowest, $4 count, $5 state, $6 queue, $7 task, $8 granted, $9 largest
-- List one day's archived jobs, newest first, within a range of ids, which bounds the search.
-- Payload fields larger than $9 bytes of JSON are left out.
-- Uses that day's primary key backwards; locks nothing.
SELECT
    a.id, a.token, a.run_at, a.created_at, a.claimed_at, a.lease_expires_at, a.ended_at,
    a.claimed_by, a.items, a.priority, a.attempt, a.max_attempts, a.losses,
    0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
    false AS cancel_requested, a.state, a.queue, a.task, a.key, a.done_reason,
    CASE
        WHEN $9::integer IS NULL
            OR pg_column_size(a.args) <= $9 AND octet_length(a.args::text) <= $9
        THEN a.args
    END AS args,
    CASE
        WHEN $9 IS NULL
            OR pg_column_size(a.result) <= $9 AND octet_length(a.result::text) <= $9
        THEN a.result
    END AS result,
    CASE
        WHEN $9 IS NULL
            OR pg_column_size(a.cursor) <= $9 AND octet_length(a.cursor::text) <= $9
        THEN a.cursor
    END AS cursor,
    CASE
        WHEN $9 IS NULL
            OR pg_column_size(a.progress) <= $9 AND octet_length(a.progress::text) <= $9
        THEN a.progress
    END AS progress,
    a.meta
FROM /*schema.*/job_archive AS a
WHERE a.filed_on = $1::date AND a.id < $2::bigint AND a.id >= $3::bigint
    AND a.state = $5::text
    AND (a.queue = $6::text OR $6 IS NULL)
    AND (a.task = $7::text OR $7 IS NULL)
    AND (a.queue LIKE ANY ($8::text[]) OR $8 IS NULL)
ORDER BY a.id DESC
LIMIT $4::integer
