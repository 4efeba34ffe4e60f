-- $1 ids, $2 tokens, $3 owners, $4 states, $5 outcomes, $6 delays, $7 charged, $8 reasons, $9 results, $10 error_types, $11 error_messages, $12 error_traces, $13 error_signatures, $14 logs, $15 filed_on, $16 now, $17 channel, $18 losses, $19 max_worker_losses, $20 max_deaths
-- End these leases' attempts. 'queued' gives the job back: after $6, or unchanged if $6 is NULL.
-- With backoff_enforced, no failure waits less than the settings' backoff. $18 is the cost of an
-- ending the handler didn't cause: 'own' a loss, 'shared' a worker loss, 'begun' nothing; with
-- max_losses 0, any fails the job. Returns a row per lease; state NULL: its key is locked.
-- Uses job_pkey and job_key_pkey; locks jobs in id order, then keys without waiting.
WITH asked AS (
    SELECT *
    FROM unnest(
        $1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::interval[], $7::boolean[],
        $8::text[], $9::jsonb[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[],
        $18::text[]
    ) AS a (
        id, token, claimed_by, state, outcome, delay, charged,
        reason, result, error_type, error_message, error_trace, error_signature, log, loss
    )
), held AS MATERIALIZED (
    SELECT
        j.id, j.token, j.claimed_by, j.task, j.key, j.queue, j.attempt, j.run_at, j.claimed_at,
        j.renewals, j.cancel_requested, j.key_for, j.awaited, j.max_losses,
        j.lease_expires_at <= coalesce($16::timestamptz, clock_timestamp()) AS late,
        CASE
            WHEN a.state = 'completed' THEN 'completed'
            WHEN j.cancel_requested THEN 'cancelled'
            WHEN a.loss IS NOT NULL AND j.max_losses = 0 THEN 'failed'
            WHEN a.loss = 'own' AND j.losses + 1 >= j.max_losses THEN 'failed'
            WHEN a.loss = 'shared' AND j.worker_losses + 1 >= $19::integer THEN 'failed'
            WHEN a.loss IN ('own', 'shared') AND j.deaths + 1 >= $20::integer THEN 'failed'
            WHEN a.state = 'queued' AND a.charged AND j.attempt >= j.max_attempts THEN 'failed'
            ELSE a.state
        END AS state,
        a.state AS asked_state, a.outcome, a.delay, a.charged, a.reason, a.result,
        a.error_type, a.error_message, a.error_trace, a.error_signature, a.log, a.loss,
        coalesce($16, clock_timestamp()) AS ended_at,
        coalesce($15::date, (coalesce($16, clock_timestamp()) AT TIME ZONE 'UTC')::date) AS filed_on
    FROM asked AS a
    JOIN /*schema.*/job AS j ON j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by
    ORDER BY a.id
    FOR UPDATE OF j
), freed AS MATERIALIZED (
    SELECT k.task, k.key, h.id,
        -- FOREVER is stored as the longest key_for, and ends with the last time a key may have.
        CASE WHEN h.key_for = '36500 days' THEN '9999-12-31 23:59:59.999999+00'
            ELSE coalesce(h.ended_at + h.key_for, h.ended_at)
        END AS expires_at
    FROM held AS h
    JOIN /*schema.*/job_key AS k ON k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key])
    WHERE h.key IS NOT NULL AND h.state <> 'queued'
    ORDER BY h.task, h.key
    FOR UPDATE OF k SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT h.*,
        CASE
            WHEN h.state = h.asked_state THEN h.reason
            WHEN h.state = 'cancelled' THEN 'requested'
            WHEN h.loss IS NOT NULL AND h.max_losses = 0 THEN 'lost'
            WHEN h.loss IS NOT NULL THEN 'poison'
            ELSE 'attempts'
        END AS done_reason,
        h.key IS NOT NULL AND h.state <> 'queued'
        AND h.id NOT IN (SELECT f.id FROM freed AS f)
        AND EXISTS (
            SELECT FROM /*schema.*/job_key AS k
            WHERE k.task = ANY (ARRAY[h.task]) AND k.key = ANY (ARRAY[h.key])
        ) AS busy
    FROM held AS h
), ended AS (
    SELECT * FROM judged AS j WHERE NOT j.busy
), key AS (
    UPDATE /*schema.*/job_key AS k SET expires_at = f.expires_at
    FROM freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING ended AS e
    WHERE j.id = ANY (ARRAY[e.id]) AND e.state <> 'queued'
    RETURNING j.*, e.state AS end_state, e.ended_at, e.filed_on, e.late, e.result,
        e.error_type, e.error_message, e.error_signature,
        j.losses + (e.loss IS NOT DISTINCT FROM 'own')::integer AS losses_now,
        j.worker_losses + (e.loss IS NOT DISTINCT FROM 'shared')::integer AS worker_losses_now,
        j.deaths + coalesce(e.loss IN ('own', 'shared'), false)::integer AS deaths_now,
        e.done_reason
), filed AS (
    INSERT INTO /*schema.*/job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, key, done_reason,
        args, result, cursor, progress, meta
    )
    SELECT
        g.id, g.token, g.run_at, g.created_at, g.claimed_at, g.lease_expires_at, g.ended_at,
        g.claimed_by, g.filed_on, g.items, g.priority, g.attempt, g.max_attempts, g.losses_now,
        g.end_state, g.queue, g.task, g.key, g.done_reason,
        g.args, g.result, g.cursor, g.progress, g.meta
    FROM gone AS g
    WHERE g.end_state <> 'failed'
), period AS MATERIALIZED (
    SELECT
        e.id AS job_id, e.token, e.run_at AS due_at, e.claimed_at AS started_at, e.ended_at,
        e.claimed_by, e.filed_on, greatest(e.renewals, 0) AS renewals, e.attempt, e.late, e.outcome,
        e.queue, e.task, e.error_type, e.error_message, e.error_trace, e.error_signature, e.log
    FROM ended AS e
), kept AS (
    INSERT INTO /*schema.*/attempt (
        job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
        outcome, queue, task, error_type, error_message, error_trace, error_signature, log
    )
    SELECT p.* FROM period AS p
), dead AS (
    INSERT INTO /*schema.*/job_failed (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, lease,
        items, target, priority, attempt, max_attempts, losses, max_losses, queue, task, key, key_for,
        done_reason, error_type, error_message, error_signature, args, cursor, progress, meta,
        worker_losses, deaths, history
    )
    SELECT
        g.id, g.token, g.run_at, g.created_at, g.claimed_at, g.lease_expires_at, g.ended_at,
        g.claimed_by, g.lease, g.items, g.target, g.priority, g.attempt, g.max_attempts, g.losses_now,
        g.max_losses, g.queue, g.task, g.key, g.key_for, g.done_reason,
        g.error_type, g.error_message, g.error_signature, g.args, g.cursor, g.progress, g.meta,
        g.worker_losses_now, g.deaths_now,
        (
            SELECT jsonb_agg(h.period ORDER BY h.token)
            FROM (
                SELECT a.token, a.period FROM (
                    SELECT t.token, to_jsonb(t) AS period
                    FROM /*schema.*/attempt AS t
                    WHERE t.job_id = ANY (ARRAY[g.id])
                    ORDER BY t.token DESC
                    LIMIT 20
                ) AS a
                UNION ALL
                SELECT p.token, to_jsonb(p)
            ) AS h
        )
    FROM gone AS g
    JOIN period AS p ON p.job_id = g.id
    WHERE g.end_state = 'failed'
), enforced AS (
    SELECT
        coalesce((
            SELECT (b.value #>> '{}')::double precision FROM /*schema.*/setting AS b WHERE b.name = 'backoff_base'
        ), 30) AS base,
        coalesce((
            SELECT (c.value #>> '{}')::double precision FROM /*schema.*/setting AS c WHERE c.name = 'backoff_cap'
        ), 3600) AS cap
    FROM /*schema.*/setting AS s
    WHERE s.name = 'backoff_enforced' AND s.value = 'true'
), back AS (
    UPDATE /*schema.*/job AS j SET
        state = 'queued',
        run_at = CASE WHEN e.delay IS NULL THEN j.run_at ELSE greatest(
            e.ended_at + e.delay,
            e.ended_at,
            CASE WHEN e.charged THEN e.ended_at + (
                SELECT make_interval(secs => least(f.cap, f.base * 2 ^ least(e.attempt - 1, 62)))
                FROM enforced AS f
            ) END
        ) END,
        returned = e.delay IS NULL,
        attempt = CASE WHEN e.charged THEN j.attempt ELSE j.attempt - 1 END,
        losses = j.losses + (e.loss IS NOT DISTINCT FROM 'own')::integer,
        worker_losses = j.worker_losses + (e.loss IS NOT DISTINCT FROM 'shared')::integer,
        deaths = j.deaths + coalesce(e.loss IN ('own', 'shared'), false)::integer,
        -- A job is no longer suspect when a handler has ended by itself.
        suspect = coalesce(e.loss IN ('own', 'shared'), false) OR (j.suspect AND e.outcome = 'released'),
        claimed_by = NULL, claimed_at = NULL, renewed_at = NULL, lease_expires_at = NULL,
        limited = false
    FROM ended AS e
    WHERE j.id = ANY (ARRAY[e.id]) AND e.state = 'queued'
)
SELECT j.id, j.token, j.claimed_by, j.late, j.task, j.key,
    CASE WHEN NOT j.busy THEN j.state END AS state, j.done_reason AS reason,
    CASE WHEN j.awaited AND NOT j.busy AND j.state <> 'queued' AND pg_notification_queue_usage() < 0.5
        THEN pg_notify($17::text, j.id::text)
    END AS notified
FROM judged AS j
