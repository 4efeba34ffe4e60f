-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 before, $13 window, $14 count, $15 states, $16 workers, $17 ended_after, $18 ended_before
-- Archived jobs that match, newest first, among the newest $13 below an id; with how many were
-- searched, and down to which id.
-- Uses job_archive_pkey of each day backwards; locks nothing.
WITH found AS MATERIALIZED (
    SELECT
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at, j.ended_at,
        j.claimed_by, j.items, j.priority, j.attempt, j.max_attempts, j.losses,
        0::smallint AS worker_losses, 0::smallint AS deaths, false AS suspect, false AS held,
        false AS cancel_requested, j.state, j.queue, j.task, j.key, j.done_reason, j.args,
        j.result, j.cursor, j.progress, j.meta
    FROM (
        SELECT *
        FROM /*schema.*/job_archive AS n
        WHERE n.id < $12::bigint
        ORDER BY n.id DESC
        LIMIT $13::integer
    ) AS j
    WHERE j.state = ANY ($15::text[])
        /*include job_filter*/
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
