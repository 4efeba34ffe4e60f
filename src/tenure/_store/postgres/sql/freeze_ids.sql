-- $1 id, $2 ids, $3 keep
-- Freeze the jobs with these ids, in any table, as an operation's members; without `keep`, only
-- count them.
-- Inserts only: locks nothing.
WITH found AS MATERIALIZED (
    SELECT DISTINCT n.id FROM unnest($2::bigint[]) AS n (id)
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $1::bigint, row_number() OVER (ORDER BY f.id), f.id
    FROM found AS f
    WHERE $3::boolean
)
SELECT count(*) AS total
FROM found AS f
