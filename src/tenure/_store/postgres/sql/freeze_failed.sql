-- $1 id, $2 queue, $3 task, $4 signature, $5 created_after, $6 created_before, $7 ended_after, $8 ended_before, $9 most, $10 keep
-- Make the dead letters that match, oldest first and at most so many, the members of an operation;
-- without `keep` only count them.
-- Uses job_failed_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT f.id, row_number() OVER (ORDER BY f.id) AS place
    FROM /*schema.*/job_failed AS f
    WHERE (f.queue = $2::text OR $2 IS NULL)
        AND (f.task = $3::text OR $3 IS NULL)
        AND (f.error_signature = $4::text OR $4 IS NULL)
        AND (f.created_at >= $5::timestamptz OR $5 IS NULL)
        AND (f.created_at < $6::timestamptz OR $6 IS NULL)
        AND (f.ended_at >= $7::timestamptz OR $7 IS NULL)
        AND (f.ended_at < $8::timestamptz OR $8 IS NULL)
    ORDER BY f.id
    LIMIT $9::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, f.place, f.id
    FROM found AS f
    WHERE $10::boolean
)
SELECT count(*) AS total
FROM found AS f
