-- $1 before, $2 window, $3 count, $4 queues, $5 tasks, $6 tags, $7 keys, $8 args, $9 created_after, $10 created_before, $11 due_after, $12 due_before, $13 attempt_from, $14 attempt_to, $15 workers, $16 ended_after, $17 ended_before, $18 errors
-- Dead letters that match, newest first, among the newest $2 below an id; with how many were
-- searched, and down to which id.
-- Uses job_failed_pkey backwards; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        f.id, f.token, f.run_at, f.created_at, f.claimed_at, f.lease_expires_at, f.ended_at,
        f.claimed_by, f.items, f.priority, f.attempt, f.max_attempts, f.losses,
        f.worker_losses, f.deaths, false AS suspect, false AS held,
        false AS cancel_requested, 'failed' AS state, f.queue, f.task, f.key, f.done_reason,
        f.args, NULL::jsonb AS result, f.cursor, f.progress, f.meta
    FROM (
        SELECT *
        FROM /*schema.*/job_failed AS n
        WHERE n.id < $1::bigint
        ORDER BY n.id DESC
        LIMIT $2::integer
    ) AS f
    WHERE (f.queue = ANY ($4::text[]) OR $4 IS NULL)
        AND (f.task = ANY ($5::text[]) OR $5 IS NULL)
        AND (f.meta -> 'tags' ?| $6::text[] OR $6 IS NULL)
        AND (f.key = ANY ($7::text[]) OR $7 IS NULL)
        AND (f.args @> ANY ($8::jsonb[]) OR $8 IS NULL)
        AND (f.created_at >= $9::timestamptz OR $9 IS NULL)
        AND (f.created_at < $10::timestamptz OR $10 IS NULL)
        AND (f.run_at >= $11::timestamptz OR $11 IS NULL)
        AND (f.run_at < $12::timestamptz OR $12 IS NULL)
        AND (f.attempt >= $13::smallint OR $13 IS NULL)
        AND (f.attempt <= $14::smallint OR $14 IS NULL)
        AND (f.claimed_by = ANY ($15::uuid[]) OR $15 IS NULL)
        AND (f.ended_at >= $16::timestamptz OR $16 IS NULL)
        AND (f.ended_at < $17::timestamptz OR $17 IS NULL)
        AND (f.error_type = ANY ($18::text[]) OR f.error_signature = ANY ($18)
            OR $18 IS NULL)
    ORDER BY f.id DESC
    LIMIT $3::integer
)
SELECT s.searched, s.lowest, f.*
FROM (
    SELECT count(*) AS searched, min(n.id) AS lowest
    FROM (
        SELECT n.id
        FROM /*schema.*/job_failed AS n
        WHERE n.id < $1
            AND n.id >= (SELECT CASE count(*) WHEN $3 THEN min(f.id) ELSE 0 END FROM found AS f)
        ORDER BY n.id DESC
        LIMIT $2
    ) AS n
) AS s
LEFT JOIN found AS f ON true
