-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 before, $13 window, $14 count, $15 views, $16 now, $17 errors, $18 granted, $19 largest
-- Search queued jobs, newest first, among the newest $13 live ones below an id; report how many
-- were searched, and down to which id.
-- Payload fields larger than $19 bytes of JSON are left out.
-- Uses job_pkey backwards, and attempt_pkey of each day; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
        NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
        j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
        j.state, j.queue, j.task, j.key,
        NULL::text AS done_reason,
        CASE
            WHEN $19::integer IS NULL
                OR pg_column_size(j.args) <= $19 AND octet_length(j.args::text) <= $19
            THEN j.args
        END AS args, NULL::jsonb AS result,
        CASE
            WHEN $19 IS NULL
                OR pg_column_size(j.cursor) <= $19 AND octet_length(j.cursor::text) <= $19
            THEN j.cursor
        END AS cursor,
        CASE
            WHEN $19 IS NULL
                OR pg_column_size(j.progress) <= $19 AND octet_length(j.progress::text) <= $19
            THEN j.progress
        END AS progress,
        j.meta
    FROM (
        SELECT *
        FROM /*schema.*/job AS n
        WHERE n.id < $12::bigint
        ORDER BY n.id DESC
        LIMIT $13::integer
    ) AS j
    WHERE j.state = 'queued'
        AND ($15::text[] IS NULL
            OR ('due' = ANY ($15) AND NOT j.held
                AND j.run_at <= coalesce($16::timestamptz, statement_timestamp()))
            OR ('scheduled' = ANY ($15) AND j.attempt = 0 AND j.deaths = 0
                AND j.run_at > coalesce($16, statement_timestamp()))
            OR ('retrying' = ANY ($15) AND (j.attempt > 0 OR j.deaths > 0))
            OR ('held' = ANY ($15) AND j.held))
        /*include job_filter*/
        AND (j.queue LIKE ANY ($18::text[]) OR $18 IS NULL)
        AND ($17::text[] IS NULL OR EXISTS (
            SELECT FROM (
                SELECT t.error_type, t.error_signature
                FROM /*schema.*/attempt AS t
                WHERE t.job_id = j.id
                ORDER BY t.token DESC
                LIMIT 1
            ) AS l
            WHERE l.error_type = ANY ($17) OR l.error_signature = ANY ($17)
        ))
    ORDER BY j.id DESC
    LIMIT $14::integer
)
SELECT s.searched, s.lowest, f.*
FROM (
    SELECT count(*) AS searched, min(n.id) AS lowest
    FROM (
        SELECT n.id
        FROM /*schema.*/job AS n
        WHERE n.id < $12
            AND n.id >= (SELECT CASE count(*) WHEN $14 THEN min(f.id) ELSE 0 END FROM found AS f)
        ORDER BY n.id DESC
        LIMIT $13
    ) AS n
) AS s
LEFT JOIN found AS f ON true
