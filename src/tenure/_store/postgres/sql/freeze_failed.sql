-- $1 queues, $2 tasks, $3 tags, $4 keys, $5 args, $6 created_after, $7 created_before, $8 due_after, $9 due_before, $10 attempt_from, $11 attempt_to, $12 id, $13 limit, $14 keep, $15 signature, $16 errors, $17 workers, $18 ended_after, $19 ended_before
-- Freeze the matching dead letters, oldest first, at most $13, as an operation's members; without
-- `keep`, only count them.
-- Uses job_failed_pkey from its beginning on; locks nothing.
WITH found AS MATERIALIZED (
    SELECT j.id, row_number() OVER (ORDER BY j.id) AS place
    FROM /*schema.*/job_failed AS j
    WHERE (j.error_signature = $15::text OR $15 IS NULL)
        AND (j.error_type = ANY ($16::text[]) OR j.error_signature = ANY ($16)
            OR $16 IS NULL)
        /*include job_filter*/
        AND (j.claimed_by = ANY ($17::uuid[]) OR $17 IS NULL)
        AND (j.ended_at >= $18::timestamptz OR $18 IS NULL)
        AND (j.ended_at < $19::timestamptz OR $19 IS NULL)
    ORDER BY j.id
    LIMIT $13::integer
), frozen AS (
    INSERT INTO /*schema.*/operation_item (operation_id, place, job_id)
    SELECT $12::bigint, f.place, f.id
    FROM found AS f
    WHERE $14::boolean
)
SELECT count(*) AS total
FROM found AS f
