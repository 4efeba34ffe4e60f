-- $1 ids, $2 largest
-- Read jobs from any table (live, dead letters, archive) in one snapshot, so a job that moves
-- between them is seen once.
-- Payload fields larger than $2 bytes of JSON are left out.
-- Uses job_pkey, job_failed_pkey and job_archive_pkey of each day; locks nothing.
SELECT
    j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
    NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
    j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
    j.state, j.queue, j.task, j.key,
    NULL::text AS done_reason,
    CASE
        WHEN $2::integer IS NULL
            OR pg_column_size(j.args) <= $2 AND octet_length(j.args::text) <= $2
        THEN j.args
    END AS args, NULL::jsonb AS result,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(j.cursor) <= $2 AND octet_length(j.cursor::text) <= $2
        THEN j.cursor
    END AS cursor,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(j.progress) <= $2 AND octet_length(j.progress::text) <= $2
        THEN j.progress
    END AS progress,
    j.meta
FROM /*schema.*/job AS j
WHERE j.id = ANY ($1::bigint[])
UNION ALL
SELECT
    f.id, f.token, f.run_at, f.created_at, f.claimed_at, f.lease_expires_at, f.ended_at,
    f.claimed_by, f.items, f.priority, f.attempt, f.max_attempts, f.losses,
    f.worker_losses, f.deaths, false AS suspect, false AS held,
    false AS cancel_requested, 'failed' AS state, f.queue, f.task, f.key, f.done_reason,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(f.args) <= $2 AND octet_length(f.args::text) <= $2
        THEN f.args
    END AS args, NULL::jsonb AS result,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(f.cursor) <= $2 AND octet_length(f.cursor::text) <= $2
        THEN f.cursor
    END AS cursor,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(f.progress) <= $2 AND octet_length(f.progress::text) <= $2
        THEN f.progress
    END AS progress,
    f.meta
FROM /*schema.*/job_failed AS f
WHERE f.id = ANY ($1)
UNION ALL
SELECT
    a.id, a.token, a.run_at, a.created_at, a.claimed_at, a.lease_expires_at, a.ended_at,
    a.claimed_by, a.items, a.priority, a.attempt, a.max_attempts, a.losses,
    0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
    false AS cancel_requested, a.state, a.queue, a.task, a.key, a.done_reason,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(a.args) <= $2 AND octet_length(a.args::text) <= $2
        THEN a.args
    END AS args,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(a.result) <= $2 AND octet_length(a.result::text) <= $2
        THEN a.result
    END AS result,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(a.cursor) <= $2 AND octet_length(a.cursor::text) <= $2
        THEN a.cursor
    END AS cursor,
    CASE
        WHEN $2 IS NULL
            OR pg_column_size(a.progress) <= $2 AND octet_length(a.progress::text) <= $2
        THEN a.progress
    END AS progress,
    a.meta
FROM /*schema.*/job_archive AS a
WHERE a.id = ANY ($1)
