-- $1 id, $2 states, $3 queue, $4 task, $5 created_after, $6 created_before, $7 most, $8 keep
-- Make the live jobs that match, oldest first and at most so many, the members of an operation;
-- without `keep` only count them.
-- Uses job_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT j.id, row_number() OVER (ORDER BY j.id) AS place
    FROM /*schema.*/job AS j
    WHERE j.state = ANY ($2::text[])
        AND (j.queue = $3::text OR $3 IS NULL)
        AND (j.task = $4::text OR $4 IS NULL)
        AND (j.created_at >= $5::timestamptz OR $5 IS NULL)
        AND (j.created_at < $6::timestamptz OR $6 IS NULL)
    ORDER BY j.id
    LIMIT $7::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, f.place, f.id
    FROM found AS f
    WHERE $8::boolean
)
SELECT count(*) AS total
FROM found AS f
