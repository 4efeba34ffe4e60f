-- $1 id, $2 limit, $3 keep, $4 signature, $5 errors, $6 queues, $7 tasks, $8 tags, $9 keys, $10 args, $11 created_after, $12 created_before, $13 due_after, $14 due_before, $15 attempt_from, $16 attempt_to, $17 workers, $18 ended_after, $19 ended_before
-- Make the dead letters that match, oldest first and at most so many, the members of an operation;
-- without `keep` only count them.
-- Uses job_failed_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT f.id, row_number() OVER (ORDER BY f.id) AS place
    FROM /*schema.*/job_failed AS f
    WHERE (f.error_signature = $4::text OR $4 IS NULL)
        AND (f.error_type = ANY ($5::text[]) OR f.error_signature = ANY ($5)
            OR $5 IS NULL)
        AND (f.queue = ANY ($6::text[]) OR $6 IS NULL)
        AND (f.task = ANY ($7::text[]) OR $7 IS NULL)
        AND (f.meta -> 'tags' ?| $8::text[] OR $8 IS NULL)
        AND (f.key = ANY ($9::text[]) OR $9 IS NULL)
        AND (f.args @> ANY ($10::jsonb[]) OR $10 IS NULL)
        AND (f.created_at >= $11::timestamptz OR $11 IS NULL)
        AND (f.created_at < $12::timestamptz OR $12 IS NULL)
        AND (f.run_at >= $13::timestamptz OR $13 IS NULL)
        AND (f.run_at < $14::timestamptz OR $14 IS NULL)
        AND (f.attempt >= $15::smallint OR $15 IS NULL)
        AND (f.attempt <= $16::smallint OR $16 IS NULL)
        AND (f.claimed_by = ANY ($17::uuid[]) OR $17 IS NULL)
        AND (f.ended_at >= $18::timestamptz OR $18 IS NULL)
        AND (f.ended_at < $19::timestamptz OR $19 IS NULL)
    ORDER BY f.id
    LIMIT $2::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, f.place, f.id
    FROM found AS f
    WHERE $3::boolean
)
SELECT count(*) AS total
FROM found AS f
