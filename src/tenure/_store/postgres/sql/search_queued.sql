-- $1 before, $2 window, $3 count, $4 views, $5 now, $6 queues, $7 tasks, $8 tags, $9 keys, $10 args, $11 created_after, $12 created_before, $13 due_after, $14 due_before, $15 attempt_from, $16 attempt_to, $17 errors
-- Queued jobs that match, newest first, among the newest $2 live ones below an id; with how many
-- were searched, and down to which id.
-- Uses job_pkey backwards, and attempt_pkey of each day; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at,
        NULL::timestamptz AS ended_at, j.claimed_by, j.items, j.priority, j.attempt,
        j.max_attempts, j.losses, j.worker_losses, j.deaths, j.suspect, j.held, j.cancel_requested,
        j.state, j.queue, j.task, j.key,
        NULL::text AS done_reason, j.args, NULL::jsonb AS result, j.cursor, j.progress, j.meta
    FROM (
        SELECT *
        FROM /*schema.*/job AS n
        WHERE n.id < $1::bigint
        ORDER BY n.id DESC
        LIMIT $2::integer
    ) AS j
    WHERE j.state = 'queued'
        AND ($4::text[] IS NULL
            OR ('due' = ANY ($4) AND NOT j.held
                AND j.run_at <= coalesce($5::timestamptz, statement_timestamp()))
            OR ('scheduled' = ANY ($4) AND j.attempt = 0 AND j.deaths = 0
                AND j.run_at > coalesce($5, statement_timestamp()))
            OR ('retrying' = ANY ($4) AND (j.attempt > 0 OR j.deaths > 0))
            OR ('held' = ANY ($4) AND j.held))
        AND (j.queue = ANY ($6::text[]) OR $6 IS NULL)
        AND (j.task = ANY ($7::text[]) OR $7 IS NULL)
        AND (j.meta -> 'tags' ?| $8::text[] OR $8 IS NULL)
        AND (j.key = ANY ($9::text[]) OR $9 IS NULL)
        AND (j.args @> ANY ($10::jsonb[]) OR $10 IS NULL)
        AND (j.created_at >= $11::timestamptz OR $11 IS NULL)
        AND (j.created_at < $12::timestamptz OR $12 IS NULL)
        AND (j.run_at >= $13::timestamptz OR $13 IS NULL)
        AND (j.run_at < $14::timestamptz OR $14 IS NULL)
        AND (j.attempt >= $15::smallint OR $15 IS NULL)
        AND (j.attempt <= $16::smallint OR $16 IS NULL)
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
    LIMIT $3::integer
)
SELECT s.searched, s.lowest, f.*
FROM (
    SELECT count(*) AS searched, min(n.id) AS lowest
    FROM (
        SELECT n.id
        FROM /*schema.*/job AS n
        WHERE n.id < $1
            AND n.id >= (SELECT CASE count(*) WHEN $3 THEN min(f.id) ELSE 0 END FROM found AS f)
        ORDER BY n.id DESC
        LIMIT $2
    ) AS n
) AS s
LEFT JOIN found AS f ON true
