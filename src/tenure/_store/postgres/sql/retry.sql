-- $1 ids, $2 now
-- Requeue dead letters under their ids: with a higher token, zero attempts and losses, and no
-- expires_in, which counts from the enqueue. If another job holds the key, the dead letter stays
-- and that job is returned. No row: not a dead letter.
-- Uses job_failed_pkey and job_key_pkey; locks dead letters in id order, then keys, waiting.
WITH dead AS MATERIALIZED (
    SELECT f.*
    FROM /*schema.*/job_failed AS f
    WHERE f.id = ANY ($1::bigint[])
    ORDER BY f.id
    FOR UPDATE
), first AS (
    SELECT DISTINCT ON (d.task, d.key) d.task, d.key, d.id
    FROM dead AS d
    WHERE d.key IS NOT NULL
    ORDER BY d.task, d.key, d.id DESC
), holder AS (
    INSERT INTO /*schema.*/job_key AS k (task, key, job_id)
    SELECT f.task, f.key, f.id FROM first AS f ORDER BY f.task, f.key
    ON CONFLICT (task, key) DO UPDATE SET
        job_id = CASE
            WHEN k.expires_at IS NULL THEN k.job_id
            WHEN k.job_id <> excluded.job_id AND k.expires_at > coalesce($2::timestamptz, clock_timestamp())
                THEN k.job_id
            ELSE excluded.job_id
        END,
        expires_at = CASE
            WHEN k.job_id <> excluded.job_id AND k.expires_at > coalesce($2, clock_timestamp()) THEN k.expires_at
        END
    RETURNING k.task, k.key, k.job_id
), revived AS MATERIALIZED (
    SELECT d.*
    FROM dead AS d
    WHERE d.key IS NULL OR d.id IN (SELECT h.job_id FROM holder AS h)
), gone AS (
    DELETE FROM /*schema.*/job_failed AS f
    USING revived AS r
    WHERE f.id = ANY (ARRAY[r.id])
), added AS (
    INSERT INTO /*schema.*/job (
        id, token, queue, task, key, key_for, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, items, target, cursor, progress, meta
    )
    SELECT
        r.id, r.token + 1, r.queue, r.task, r.key, r.key_for, r.args, r.priority, r.created_at,
        coalesce($2, clock_timestamp()),
        r.max_attempts, r.max_losses, r.lease, r.items, r.target, r.cursor, r.progress,
        r.meta - 'expires_in'
    FROM revived AS r
)
SELECT d.id, coalesce(h.job_id, d.id) AS holder
FROM dead AS d
LEFT JOIN holder AS h ON h.task = d.task AND h.key = d.key
