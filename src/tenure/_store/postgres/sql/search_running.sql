-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 before, $13 window, $14 count, $15 expired, $16 now, $17 workers, $18 errors, $19 granted, $20 largest
-- Search running jobs, newest first, among the $13 below an id whose leases expire first; report
-- how many were searched.
-- Payload fields larger than $20 bytes of JSON are left out.
-- Uses job_expiry_idx, and attempt_pkey of each day; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
        NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
        j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
        j.state, j.queue, j.task, j.key,
        NULL::text AS done_reason,
        CASE
            WHEN $20::integer IS NULL
                OR pg_column_size(j.args) <= $20 AND octet_length(j.args::text) <= $20
            THEN j.args
        END AS args, NULL::jsonb AS result,
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
        FROM /*schema.*/job AS n
        WHERE n.state = 'running' AND n.id < $12::bigint
        ORDER BY n.lease_expires_at
        LIMIT $13::integer
    ) AS j
    WHERE (j.lease_expires_at <= coalesce($16::timestamptz, statement_timestamp()) OR NOT $15::boolean)
        /*include job_filter*/
        AND (j.queue LIKE ANY ($19::text[]) OR $19 IS NULL)
        AND (j.claimed_by = ANY ($17::uuid[]) OR $17 IS NULL)
        AND ($18::text[] IS NULL OR EXISTS (
            SELECT FROM (
                SELECT t.error_type, t.error_signature
                FROM /*schema.*/attempt AS t
                WHERE t.job_id = j.id
                ORDER BY t.token DESC
                LIMIT 1
            ) AS l
            WHERE l.error_type = ANY ($18) OR l.error_signature = ANY ($18)
        ))
    ORDER BY j.id DESC
    LIMIT $14::integer
)
SELECT s.searched, NULL::bigint AS lowest, f.*
FROM (
    SELECT count(*) AS searched
    FROM (
        SELECT n.id
        FROM /*schema.*/job AS n
        WHERE n.state = 'running' AND n.id < $12
        ORDER BY n.lease_expires_at
        LIMIT $13
    ) AS n
) AS s
LEFT JOIN found AS f ON true
