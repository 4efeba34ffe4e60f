-- $1 day, $2 after, $3 count
-- Delete the items of one day's archived jobs, one id range at a time, before the day is dropped.
-- No row: the day is done.
-- Uses that day's primary key and job_item_pkey.
WITH stretch AS MATERIALIZED (
    SELECT a.id, a.items
    FROM /*schema.*/job_archive AS a
    WHERE a.filed_on = $1::date AND a.id > $2::bigint
    ORDER BY a.id
    LIMIT $3::integer
), gone AS (
    DELETE FROM /*schema.*/job_item AS i
    WHERE i.job_id = ANY (ARRAY(SELECT s.id FROM stretch AS s WHERE s.items > 0))
)
SELECT max(s.id) AS id
FROM stretch AS s
HAVING count(*) > 0
