-- $1 ids, $2 filed_on, $3 now
-- Take running jobs away from their holders and end them as cancelled, under a higher token, so the
-- holder's next write is rejected. No row: not running.
-- Uses job_pkey and job_key_pkey; locks jobs in id order, then keys, waiting.
WITH held AS MATERIALIZED (
    SELECT j.*, coalesce($3::timestamptz, clock_timestamp()) AS ended_at,
        coalesce($2::date, (coalesce($3, clock_timestamp()) AT TIME ZONE 'UTC')::date) AS filed_on
    FROM /*schema.*/job AS j
    WHERE j.id = ANY ($1::bigint[]) AND j.claimed_by IS NOT NULL
    ORDER BY j.id
    FOR UPDATE
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING held AS h
    WHERE j.id = ANY (ARRAY[h.id])
), freed AS MATERIALIZED (
    SELECT k.task, k.key, h.id,
        -- FOREVER is stored as the longest key_for, and ends with the last time a key may have.
        CASE WHEN h.key_for = '36500 days' THEN '9999-12-31 23:59:59.999999+00'
            ELSE coalesce(h.ended_at + h.key_for, h.ended_at)
        END AS expires_at
    FROM held AS h
    JOIN /*schema.*/job_key AS k ON k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key])
    WHERE h.key IS NOT NULL
    ORDER BY h.task, h.key
    FOR UPDATE OF k
), key AS (
    UPDATE /*schema.*/job_key AS k SET expires_at = f.expires_at
    FROM freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
), filed AS (
    INSERT INTO /*schema.*/job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, key, done_reason,
        args, cursor, progress, meta
    )
    SELECT
        h.id, h.token + 1, h.run_at, h.created_at, h.claimed_at, h.lease_expires_at, h.ended_at,
        h.claimed_by, h.filed_on, h.items, h.priority, h.attempt, h.max_attempts, h.losses,
        'cancelled', h.queue, h.task, h.key, 'revoked',
        h.args, h.cursor, h.progress, h.meta
    FROM held AS h
), kept AS (
    INSERT INTO /*schema.*/attempt (
        job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
        outcome, queue, task
    )
    SELECT
        h.id, h.token, h.run_at, h.claimed_at, h.ended_at, h.claimed_by, h.filed_on,
        greatest(h.renewals, 0), h.attempt, false, 'revoked', h.queue, h.task
    FROM held AS h
)
SELECT h.id, h.token, h.claimed_by
FROM held AS h
