-- $1 id, $2 limit, $3 keep, $4 state, $5 queues, $6 tasks, $7 tags, $8 keys, $9 args, $10 created_after, $11 created_before, $12 due_after, $13 due_before, $14 attempt_from, $15 attempt_to, $16 workers, $17 ended_after, $18 ended_before
-- Make the archived jobs that match, oldest first and at most so many, the members of an operation;
-- without `keep` only count them.
-- Uses job_archive_pkey of each day from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT a.id, row_number() OVER (ORDER BY a.id) AS place
    FROM /*schema.*/job_archive AS a
    WHERE a.state = $4::text
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
    ORDER BY a.id
    LIMIT $2::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, f.place, f.id
    FROM found AS f
    WHERE $3::boolean
)
SELECT count(*) AS total
FROM found AS f
