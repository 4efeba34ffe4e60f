-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 id, $13 limit, $14 keep, $15 states, $16 views, $17 expired, $18 now, $19 workers
-- Freeze the matching live jobs, oldest first, at most $13, as an operation's members; without
-- `keep`, only count them.
-- Uses job_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT j.id, row_number() OVER (ORDER BY j.id) AS place
    FROM /*schema.*/job AS j
    WHERE j.state = ANY ($15::text[])
        AND (j.state = 'running' OR $16::text[] IS NULL
            OR ('due' = ANY ($16) AND NOT j.held
                AND j.run_at <= coalesce($18::timestamptz, statement_timestamp()))
            OR ('scheduled' = ANY ($16) AND j.attempt = 0 AND j.deaths = 0
                AND j.run_at > coalesce($18, statement_timestamp()))
            OR ('retrying' = ANY ($16) AND (j.attempt > 0 OR j.deaths > 0))
            OR ('held' = ANY ($16) AND j.held))
        AND (j.state = 'queued' OR NOT $17::boolean
            OR j.lease_expires_at <= coalesce($18, statement_timestamp()))
        /*include job_filter*/
        AND (j.claimed_by = ANY ($19::uuid[]) OR $19 IS NULL)
    ORDER BY j.id
    LIMIT $13::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $12::bigint, f.place, f.id
    FROM found AS f
    WHERE $14::boolean
)
SELECT count(*) AS total
FROM found AS f
