-- $1 ids, $2 args, $3 priority, $4 run_at, $5 max_attempts, $6 meta, $7 now
-- Change queued jobs and dead letters. NULL leaves a field unchanged; $6 replaces single fields of
-- meta. A job that gets another priority but keeps its time is marked as returned, as by a move.
-- Uses job_pkey and job_failed_pkey; the rows are locked, by lock_editable or by retry.
WITH given AS MATERIALIZED (
    SELECT g.id, g.args FROM unnest($1::bigint[], $2::jsonb[]) AS g (id, args)
), live AS (
    UPDATE /*schema.*/job AS j SET
        args = coalesce(g.args, j.args),
        priority = coalesce($3::smallint, j.priority),
        run_at = CASE
            WHEN $4::timestamptz IS NULL THEN j.run_at
            ELSE greatest($4, coalesce($7::timestamptz, clock_timestamp()))
        END,
        returned = $4 IS NULL AND (j.returned OR $3 IS NOT NULL),
        max_attempts = coalesce($5::smallint, j.max_attempts),
        meta = CASE WHEN $6::jsonb IS NULL THEN j.meta ELSE coalesce(j.meta, '{}') || $6 END
    FROM given AS g
    WHERE j.id = ANY (ARRAY[g.id])
)
UPDATE /*schema.*/job_failed AS f SET
    args = coalesce(g.args, f.args),
    priority = coalesce($3, f.priority),
    max_attempts = coalesce($5, f.max_attempts),
    meta = CASE WHEN $6 IS NULL THEN f.meta ELSE coalesce(f.meta, '{}') || $6 END
FROM given AS g
WHERE f.id = ANY (ARRAY[g.id])
