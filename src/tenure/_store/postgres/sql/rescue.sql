-- $1 floor, $2 count, $3 queues, $4 filed_on, $5 now
-- End leases that are over: back to the queue under a raised token, or failed as poison or
-- lost, or cancelled where that was asked. No loss is counted if the server itself started
-- after the last renewal, or was promoted after the claim; nor of a suspect whose holder never
-- confirmed its claim, and so began nothing: that is a release. Anyone may, any number at once.
-- Uses job_expiry_idx above the floor; locks jobs and keys, skipping locked ones.
WITH expired AS MATERIALIZED (
    SELECT j.*
    FROM /*schema.*/job AS j
    WHERE j.state = 'running'
        AND j.lease_expires_at > $1::timestamptz
        AND j.lease_expires_at <= coalesce($5::timestamptz, statement_timestamp())
        AND ($3::text[] IS NULL OR j.queue = ANY ($3))
    ORDER BY j.lease_expires_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT
        e.*,
        e.losses + l.loss AS losses_now,
        l.charged,
        CASE
            WHEN e.cancel_requested THEN 'cancelled'
            WHEN e.losses + l.loss >= e.max_losses OR l.charged >= e.max_attempts THEN 'failed'
            ELSE 'queued'
        END AS verdict,
        CASE
            WHEN e.cancel_requested THEN 'requested'
            WHEN e.losses + l.loss >= e.max_losses THEN 'poison'
            ELSE 'lost'
        END AS done_reason,
        coalesce($5, clock_timestamp()) AS ended_at,
        coalesce($4::date, (coalesce($5, clock_timestamp()) AT TIME ZONE 'UTC')::date) AS filed_on
    FROM expired AS e
    CROSS JOIN LATERAL (
        SELECT CASE WHEN e.renewals < 0 THEN e.attempt - 1 ELSE e.attempt END AS charged, CASE
            WHEN e.renewals < 0 THEN 0
            WHEN pg_postmaster_start_time() > e.renewed_at THEN 0
            WHEN e.token >> 40 < (
                SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
            ) THEN 0
            ELSE 1
        END AS loss
    ) AS l
), freed AS MATERIALIZED (
    SELECT k.task, k.key, j.id, coalesce(j.ended_at + j.key_for, j.ended_at) AS until
    FROM judged AS j
    JOIN /*schema.*/job_key AS k ON k.task = ANY (ARRAY[j.task]) AND k.key = ANY (ARRAY[j.key])
    WHERE j.key IS NOT NULL AND j.verdict <> 'queued'
    ORDER BY j.task, j.key
    FOR UPDATE OF k SKIP LOCKED
), ended AS MATERIALIZED (
    SELECT j.*
    FROM judged AS j
    WHERE j.key IS NULL OR j.verdict = 'queued'
        OR j.id IN (SELECT f.id FROM freed AS f)
        OR NOT EXISTS (
            SELECT FROM /*schema.*/job_key AS k
            WHERE k.task = ANY (ARRAY[j.task]) AND k.key = ANY (ARRAY[j.key])
        )
), key AS (
    UPDATE /*schema.*/job_key AS k SET until = f.until
    FROM freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
), back AS (
    UPDATE /*schema.*/job AS j SET
        state = 'queued', returned = true, token = j.token + 1, losses = e.losses_now,
        attempt = e.charged,
        claimed_by = NULL, claimed_at = NULL, renewed_at = NULL, lease_expires_at = NULL,
        limited = false
    FROM ended AS e
    WHERE j.id = ANY (ARRAY[e.id]) AND e.verdict = 'queued'
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING ended AS e
    WHERE j.id = ANY (ARRAY[e.id]) AND e.verdict <> 'queued'
), filed AS (
    INSERT INTO /*schema.*/job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, key, done_reason,
        args, cursor, progress, meta
    )
    SELECT
        e.id, e.token + 1, e.run_at, e.created_at, e.claimed_at, e.lease_expires_at, e.ended_at,
        e.claimed_by, e.filed_on, e.items, e.priority, e.attempt, e.max_attempts, e.losses_now,
        e.verdict, e.queue, e.task, e.key, e.done_reason, e.args, e.cursor, e.progress, e.meta
    FROM ended AS e
    WHERE e.verdict = 'cancelled'
), dead AS (
    INSERT INTO /*schema.*/job_failed (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, lease,
        items, target, priority, attempt, max_attempts, losses, max_losses, queue, task, key, key_for,
        done_reason, args, cursor, progress, meta
    )
    SELECT
        e.id, e.token + 1, e.run_at, e.created_at, e.claimed_at, e.lease_expires_at, e.ended_at,
        e.claimed_by, e.lease, e.items, e.target, e.priority, e.attempt, e.max_attempts,
        e.losses_now, e.max_losses, e.queue, e.task, e.key, e.key_for, e.done_reason,
        e.args, e.cursor, e.progress, e.meta
    FROM ended AS e
    WHERE e.verdict = 'failed'
), kept AS (
    INSERT INTO /*schema.*/attempt (
        job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
        outcome, queue, task
    )
    SELECT
        e.id, e.token, e.run_at, e.claimed_at, e.ended_at, e.claimed_by, e.filed_on,
        greatest(e.renewals, 0), e.attempt, false,
        CASE WHEN e.renewals < 0 THEN 'released' ELSE 'lost' END, e.queue, e.task
    FROM ended AS e
)
SELECT
    coalesce($5, statement_timestamp()) AS now,
    (SELECT count(*) FROM expired) AS found,
    e.id, e.token, e.queue, e.verdict AS state, e.done_reason, e.claimed_by, e.losses_now AS losses,
    e.task, e.attempt, e.max_attempts, e.key, e.meta
FROM (SELECT) AS always
LEFT JOIN ended AS e ON true
