-- $1 ids
-- Delete ended jobs with their items and any keys they still hold. Live jobs stay and are reported.
-- No row: no job has the id.
-- Uses job_failed_pkey, job_archive_pkey of each day, job_item_pkey, job_key_pkey and job_pkey;
-- locks dead letters, then archived jobs in id order, then keys, waiting.
WITH dead AS MATERIALIZED (
    SELECT f.id, f.task, f.key
    FROM /*schema.*/job_failed AS f
    WHERE f.id = ANY ($1::bigint[])
    ORDER BY f.id
    FOR UPDATE
), filed AS MATERIALIZED (
    SELECT a.id, a.task, a.key
    FROM /*schema.*/job_archive AS a
    WHERE a.id = ANY ($1)
    ORDER BY a.id
    FOR UPDATE
), ended AS MATERIALIZED (
    SELECT d.id, d.task, d.key FROM dead AS d
    UNION ALL
    SELECT f.id, f.task, f.key FROM filed AS f
), items AS (
    DELETE FROM /*schema.*/job_item AS i USING ended AS e WHERE i.job_id = ANY (ARRAY[e.id])
), gone_dead AS (
    DELETE FROM /*schema.*/job_failed AS f USING dead AS d WHERE f.id = ANY (ARRAY[d.id])
), gone_filed AS (
    DELETE FROM /*schema.*/job_archive AS a USING filed AS f WHERE a.id = ANY (ARRAY[f.id])
), freed AS MATERIALIZED (
    SELECT k.task, k.key, e.id
    FROM (SELECT n.* FROM ended AS n WHERE n.key IS NOT NULL ORDER BY n.task, n.key) AS e
    CROSS JOIN LATERAL (
        SELECT h.task, h.key
        FROM /*schema.*/job_key AS h
        WHERE h.task = e.task AND h.key = e.key
        FOR UPDATE
    ) AS k
), keys AS (
    DELETE FROM /*schema.*/job_key AS k
    USING freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
)
SELECT e.id, false AS live FROM ended AS e
UNION ALL
SELECT j.id, true AS live FROM /*schema.*/job AS j WHERE j.id = ANY ($1)
