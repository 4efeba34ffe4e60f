-- $1 ids, $2 filed_on, $3 now
-- Cancel jobs: end a queued one, request it for a running one (its next renewal reports it). No
-- row: no live job has the id.
-- Uses job_pkey and job_key_pkey; locks jobs in id order, then keys, waiting.
WITH held AS MATERIALIZED (
    SELECT j.*, coalesce($3::timestamptz, clock_timestamp()) AS ended_at
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[])
    ORDER BY j.id
    FOR UPDATE
), asked AS (
    UPDATE /*schema.*/job AS j SET cancel_requested = true
    FROM held AS h
    WHERE j.id = ANY (ARRAY[h.id]) AND h.state = 'running'
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING held AS h
    WHERE j.id = ANY (ARRAY[h.id]) AND h.state = 'queued'
), freed AS MATERIALIZED (
    SELECT k.task, k.key, h.id,
        -- FOREVER is stored as the longest key_for, and ends with the last time a key may have.
        CASE WHEN h.key_for = '36500 days' THEN '9999-12-31 23:59:59.999999+00'
            ELSE coalesce(h.ended_at + h.key_for, h.ended_at)
        END AS expires_at
    FROM held AS h
    JOIN /*schema.*/job_key AS k ON k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key])
    WHERE h.key IS NOT NULL AND h.state = 'queued'
    ORDER BY h.task, h.key
    FOR UPDATE OF k
), key AS (
    UPDATE /*schema.*/job_key AS k SET expires_at = f.expires_at
    FROM freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
), filed AS (
    INSERT INTO /*schema.*/job_archive (
        id, token, run_at, created_at, ended_at, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, key, done_reason,
        args, cursor, progress, meta
    )
    SELECT
        h.id, h.token, h.run_at, h.created_at, h.ended_at,
        coalesce($2::date, (h.ended_at AT TIME ZONE 'UTC')::date),
        h.items, h.priority, h.attempt, h.max_attempts, h.losses, 'cancelled', h.queue, h.task, h.key,
        'requested', h.args, h.cursor, h.progress, h.meta
    FROM held AS h
    WHERE h.state = 'queued'
)
SELECT h.id, h.state AS was
FROM held AS h
