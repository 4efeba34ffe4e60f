-- $1 before, $2 window, $3 count, $4 states, $5 queues, $6 tasks, $7 tags, $8 keys, $9 args, $10 created_after, $11 created_before, $12 due_after, $13 due_before, $14 attempt_from, $15 attempt_to, $16 workers, $17 ended_after, $18 ended_before
-- Archived jobs that match, newest first, among the newest $2 below an id; with how many were
-- searched, and down to which id.
-- Uses job_archive_pkey of each day backwards; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        a.id, a.token, a.run_at, a.created_at, a.claimed_at, a.lease_expires_at, a.ended_at,
        a.claimed_by, a.items, a.priority, a.attempt, a.max_attempts, a.losses,
        0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
        false AS cancel_requested, a.state, a.queue, a.task, a.key, a.done_reason, a.args,
        a.result, a.cursor, a.progress, a.meta
    FROM (
        SELECT *
        FROM /*schema.*/job_archive AS n
        WHERE n.id < $1::bigint
        ORDER BY n.id DESC
        LIMIT $2::integer
    ) AS a
    WHERE a.state = ANY ($4::text[])
        AND (a.queue = ANY ($5::text[]) OR $5 IS NULL)
        AND (a.task = ANY ($6::text[]) OR $6 IS NULL)
        AND (a.meta -> 'tags' ?| $7::text[] OR $7 IS NULL)
        AND (a.key = ANY ($8::text[]) OR $8 IS NULL)
        AND (a.args @> ANY ($9::jsonb[]) OR $9 IS NULL)
        AND (a.created_at >= $10::timestamptz OR $10 IS NULL)
        AND (a.created_at < $11::timestamptz OR $11 IS NULL)
        AND (a.run_at >= $12::timestamptz OR $12 IS NULL)
        AND (a.run_at < $13::timestamptz OR $13 IS NULL)
        AND (a.attempt >= $14::smallint OR $14 IS NULL)
        AND (a.attempt <= $15::smallint OR $15 IS NULL)
        AND (a.claimed_by = ANY ($16::uuid[]) OR $16 IS NULL)
        AND (a.ended_at >= $17::timestamptz OR $17 IS NULL)
        AND (a.ended_at < $18::timestamptz OR $18 IS NULL)
    ORDER BY a.id DESC
    LIMIT $3::integer
)
SELECT s.searched, s.lowest, f.*
FROM (
    SELECT count(*) AS searched, min(n.id) AS lowest
    FROM (
        SELECT n.id
        FROM /*schema.*/job_archive AS n
        WHERE n.id < $1
            AND n.id >= (SELECT CASE count(*) WHEN $3 THEN min(f.id) ELSE 0 END FROM found AS f)
        ORDER BY n.id DESC
        LIMIT $2
    ) AS n
) AS s
LEFT JOIN found AS f ON true
