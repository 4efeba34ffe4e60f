-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 ids, $13 id, $14 limit
-- Freeze the matching jobs of all tables in one snapshot, oldest first, at most $14, as an
-- erasure's members, and count them by table. An id without a job is a member, too: its attempts
-- may be left.
-- Uses the primary key of each job table from its beginning on; locks nothing.
WITH matched AS MATERIALIZED (
    SELECT j.id, 'job' AS home
    FROM /*schema.*/job AS j
    WHERE (j.id = ANY ($12::bigint[]) OR $12 IS NULL)
        /*include job_filter*/
    UNION ALL
    SELECT j.id, 'job_failed'
    FROM /*schema.*/job_failed AS j
    WHERE (j.id = ANY ($12) OR $12 IS NULL)
        /*include job_filter*/
    UNION ALL
    SELECT j.id, 'job_archive'
    FROM /*schema.*/job_archive AS j
    WHERE (j.id = ANY ($12) OR $12 IS NULL)
        /*include job_filter*/
), found AS MATERIALIZED (
    SELECT f.id, row_number() OVER (ORDER BY f.id) AS place
    FROM (
        SELECT m.id FROM matched AS m
        UNION
        SELECT n.id FROM unnest($12) AS n (id)
    ) AS f
    ORDER BY f.id
    LIMIT $14::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $13::bigint, f.place, f.id
    FROM found AS f
)
SELECT
    (SELECT count(*) FROM found) AS total,
    count(*) FILTER (WHERE m.home = 'job') AS job,
    count(*) FILTER (WHERE m.home = 'job_failed') AS job_failed,
    count(*) FILTER (WHERE m.home = 'job_archive') AS job_archive
FROM matched AS m
