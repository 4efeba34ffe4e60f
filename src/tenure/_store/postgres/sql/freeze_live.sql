-- $1 id, $2 limit, $3 keep, $4 states, $5 views, $6 expired, $7 now, $8 queues, $9 tasks, $10 tags, $11 keys, $12 args, $13 created_after, $14 created_before, $15 due_after, $16 due_before, $17 attempt_from, $18 attempt_to, $19 workers
-- Make the live jobs that match, oldest first and at most so many, the members of an operation;
-- without `keep` only count them.
-- Uses job_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT j.id, row_number() OVER (ORDER BY j.id) AS place
    FROM /*schema.*/job AS j
    WHERE j.state = ANY ($4::text[])
        AND (j.state = 'running' OR $5::text[] IS NULL
            OR ('due' = ANY ($5) AND NOT j.held
                AND j.run_at <= coalesce($7::timestamptz, statement_timestamp()))
            OR ('scheduled' = ANY ($5) AND j.attempt = 0 AND j.deaths = 0
                AND j.run_at > coalesce($7, statement_timestamp()))
            OR ('retrying' = ANY ($5) AND (j.attempt > 0 OR j.deaths > 0))
            OR ('held' = ANY ($5) AND j.held))
        AND (j.state = 'queued' OR NOT $6::boolean
            OR j.lease_expires_at <= coalesce($7, statement_timestamp()))
        AND (j.queue = ANY ($8::text[]) OR $8 IS NULL)
        AND (j.task = ANY ($9::text[]) OR $9 IS NULL)
        AND (j.meta -> 'tags' ?| $10::text[] OR $10 IS NULL)
        AND (j.key = ANY ($11::text[]) OR $11 IS NULL)
        AND (j.args @> ANY ($12::jsonb[]) OR $12 IS NULL)
        AND (j.created_at >= $13::timestamptz OR $13 IS NULL)
        AND (j.created_at < $14::timestamptz OR $14 IS NULL)
        AND (j.run_at >= $15::timestamptz OR $15 IS NULL)
        AND (j.run_at < $16::timestamptz OR $16 IS NULL)
        AND (j.attempt >= $17::smallint OR $17 IS NULL)
        AND (j.attempt <= $18::smallint OR $18 IS NULL)
        AND (j.claimed_by = ANY ($19::uuid[]) OR $19 IS NULL)
    ORDER BY j.id
    LIMIT $2::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, f.place, f.id
    FROM found AS f
    WHERE $3::boolean
)
SELECT count(*) AS total
FROM found AS f
