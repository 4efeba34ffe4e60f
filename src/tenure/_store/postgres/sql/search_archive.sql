-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 before, $13 window, $14 count, $15 states, $16 workers, $17 ended_after, $18 ended_before, $19 granted, $20 largest
-- Search archived jobs, newest first, among the newest $13 below an id; report how many were
-- searched, and down to which id.
-- Payload fields larger than $20 bytes of JSON are left out.
-- Uses job_archive_pkey of each day backwards; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at, j.ended_at,
        j.claimed_by, j.items, j.priority, j.attempt, j.max_attempts, j.losses,
        0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
        false AS cancel_requested, j.state, j.queue, j.task, j.key, j.done_reason,
        CASE
            WHEN $20::integer IS NULL
                OR pg_column_size(j.args) <= $20 AND octet_length(j.args::text) <= $20
            THEN j.args
        END AS args,
        CASE
            WHEN $20 IS NULL
                OR pg_column_size(j.result) <= $20 AND octet_length(j.result::text) <= $20
            THEN j.result
        END AS result,
        CASE
            WHEN $20 IS NULL
                OR pg_column_size(j.cursor) <= $20 AND octet_length(j.cursor::text) <= $20
            THEN j.cursor
        END AS cursor,
        CASE
            WHEN $20 IS NULL
                OR pg_column_size(j.progress) <= $20 AND octet_length(j.progress::text) <= $20
            THEN j.progress
        END AS progress,
        j.meta
    FROM (
        SELECT *
        FROM /*schema.*/job_archive AS n
        WHERE n.id < $12::bigint
        ORDER BY n.id DESC
        LIMIT $13::integer
    ) AS j
    WHERE j.state = ANY ($15::text[])
        /*include job_filter*/
        AND (j.queue LIKE ANY ($19::text[]) OR $19 IS NULL)
        AND (j.claimed_by = ANY ($16::uuid[]) OR $16 IS NULL)
        AND (j.ended_at >= $17::timestamptz OR $17 IS NULL)
        AND (j.ended_at < $18::timestamptz OR $18 IS NULL)
    ORDER BY j.id DESC
    LIMIT $14::integer
)
SELECT s.searched, s.lowest, f.*
FROM (
    SELECT count(*) AS searched, min(n.id) AS lowest
    FROM (
        SELECT n.id
        FROM /*schema.*/job_archive AS n
        WHERE n.id < $12
            AND n.id >= (SELECT CASE count(*) WHEN $14 THEN min(f.id) ELSE 0 END FROM found AS f)
        ORDER BY n.id DESC
        LIMIT $13
    ) AS n
) AS s
LEFT JOIN found AS f ON true
