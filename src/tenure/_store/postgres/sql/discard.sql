-- $1 ids
-- Delete dead letters and their items. No row: not a dead letter.
-- Uses job_failed_pkey and job_item_pkey; locks dead letters in id order, waiting.
WITH dead AS MATERIALIZED (
    SELECT f.id
    FROM /*schema.*/job_failed AS f
    WHERE f.id = ANY ($1::bigint[])
    ORDER BY f.id
    FOR UPDATE
), items AS (
    DELETE FROM /*schema.*/job_item AS i USING dead AS d WHERE i.job_id = ANY (ARRAY[d.id])
)
DELETE FROM /*schema.*/job_failed AS f
USING dead AS d
WHERE f.id = ANY (ARRAY[d.id])
RETURNING f.id
