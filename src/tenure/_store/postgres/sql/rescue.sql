-- $1 floor, $2 count, $3 queues, $4 filed_on, $5 now, $6 holder, $7 kept, $8 max_worker_losses, $9 max_deaths, $10 before_at, $11 alone_deaths
-- End expired leases, except those that $6 still holds ($7): back to the queue with the attempt,
-- under a higher token, failed at a cap, or cancelled on request. Counts a worker loss; only a
-- death if the handler isn't known to have begun (renewals is -1); nothing if the server started
-- after the last renewal or was promoted after the claim.
-- Uses job_expiry_idx above the floor; locks jobs and keys, skipping locked ones.
WITH expired AS MATERIALIZED (
    SELECT j.*
    FROM /*schema.*/job AS j
    WHERE j.state = 'running'
        AND j.lease_expires_at > $1::timestamptz
        AND j.lease_expires_at <= coalesce($5::timestamptz, statement_timestamp())
        AND ($3::text[] IS NULL OR j.queue = ANY ($3))
        AND NOT (j.id = ANY ($7::bigint[]) AND j.claimed_by = $6::uuid)
        -- Rescue nothing after a wait for the table's lock: holders waited for it too, and go
        -- first. The wait is over when statement_timestamp() is read, so it counts from the
        -- transaction's start.
        AND NOT (
            SELECT clock_timestamp() - coalesce($10::timestamptz, transaction_timestamp()) > interval '1 second'
        )
    ORDER BY j.lease_expires_at
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
), counted AS MATERIALIZED (
    SELECT
        e.*, l.excused,
        e.worker_losses + (e.renewals >= 0 AND NOT l.excused)::integer AS worker_losses_now,
        e.deaths + (NOT l.excused)::integer AS deaths_now
    FROM expired AS e
    CROSS JOIN LATERAL (
        SELECT pg_postmaster_start_time() > e.renewed_at OR e.token >> 40 <
        /*include timeline*/
        AS excused
    ) AS l
), judged AS MATERIALIZED (
    SELECT
        c.*,
        CASE
            WHEN c.cancel_requested THEN 'cancelled'
            WHEN c.max_losses = 0 AND c.renewals >= 0 THEN 'failed'
            WHEN c.worker_losses_now >= $8::integer OR c.deaths_now >= $9::integer THEN 'failed'
            ELSE 'queued'
        END AS verdict,
        CASE
            WHEN c.cancel_requested THEN 'requested'
            WHEN c.max_losses = 0 AND c.renewals >= 0 THEN 'lost'
            ELSE 'poison'
        END AS done_reason,
        CASE WHEN c.excused THEN 'Outage' ELSE 'LeaseExpired' END AS error_type,
        CASE WHEN c.excused
            THEN 'the database was restarted or failed over while the job ran'
            ELSE 'the lease expired and its worker did not give it back'
        END || CASE WHEN c.renewals < 0 THEN ', and the handler is not known to have begun' ELSE '' END AS cause,
        format(
            ' (lease expired at %s, worker %s, last seen at %s)',
            to_char(c.lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
            coalesce(w.name, c.claimed_by::text),
            coalesce(to_char(w.last_heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'), 'an unknown time')
        ) AS detail,
        coalesce($5, clock_timestamp()) AS ended_at,
        coalesce($4::date, (coalesce($5, clock_timestamp()) AT TIME ZONE 'UTC')::date) AS filed_on
    FROM counted AS c
    LEFT JOIN /*schema.*/worker AS w ON w.id = c.claimed_by
), freed AS MATERIALIZED (
    SELECT k.task, k.key, j.id,
        -- FOREVER is stored as the longest key_for, and ends with the last time a key may have.
        CASE WHEN j.key_for = '36500 days' THEN '9999-12-31 23:59:59.999999+00'
            ELSE coalesce(j.ended_at + j.key_for, j.ended_at)
        END AS expires_at
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
    UPDATE /*schema.*/job_key AS k SET expires_at = f.expires_at
    FROM freed AS f
    WHERE k.task = ANY (ARRAY[f.task]) AND k.key = ANY (ARRAY[f.key]) AND k.job_id = f.id
), back AS (
    UPDATE /*schema.*/job AS j SET
        state = 'queued', returned = true, token = j.token + 1,
        attempt = j.attempt - 1, worker_losses = e.worker_losses_now, deaths = e.deaths_now,
        -- The first loss of a worker is nearly always the machine's fault; the second in a row is
        -- suspect. Progress resets worker losses, so a job with many deaths is suspect, too.
        suspect = j.suspect OR (
            e.worker_losses_now > j.worker_losses
            AND (e.worker_losses_now >= 2 OR e.deaths_now >= $11::integer)
        ),
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
        e.claimed_by, e.filed_on, e.items, e.priority, e.attempt, e.max_attempts, e.losses,
        e.verdict, e.queue, e.task, e.key, e.done_reason, e.args, e.cursor, e.progress, e.meta
    FROM ended AS e
    WHERE e.verdict = 'cancelled'
), period AS MATERIALIZED (
    SELECT
        e.id AS job_id, e.token, e.run_at AS due_at, e.claimed_at AS started_at, e.ended_at,
        e.claimed_by, e.filed_on, greatest(e.renewals, 0) AS renewals, e.attempt, false AS late,
        CASE WHEN e.excused THEN 'released' ELSE 'lost' END AS outcome, e.queue, e.task,
        e.error_type, e.cause || e.detail AS error_message,
        e.error_type || ': ' || e.cause AS error_signature
    FROM ended AS e
), kept AS (
    INSERT INTO /*schema.*/attempt (
        job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
        outcome, queue, task, error_type, error_message, error_signature
    )
    SELECT p.* FROM period AS p
), dead AS (
    INSERT INTO /*schema.*/job_failed (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, lease,
        items, target, priority, attempt, max_attempts, losses, max_losses, queue, task, key, key_for,
        done_reason, args, cursor, progress, meta, worker_losses, deaths,
        error_type, error_message, error_signature, history
    )
    SELECT
        e.id, e.token + 1, e.run_at, e.created_at, e.claimed_at, e.lease_expires_at, e.ended_at,
        e.claimed_by, e.lease, e.items, e.target, e.priority, e.attempt, e.max_attempts,
        e.losses, e.max_losses, e.queue, e.task, e.key, e.key_for, e.done_reason,
        e.args, e.cursor, e.progress, e.meta, e.worker_losses_now, e.deaths_now,
        p.error_type, p.error_message, p.error_signature,
        (
            SELECT jsonb_agg(h.period ORDER BY h.token)
            FROM (
                SELECT a.token, a.period FROM (
                    SELECT t.token, to_jsonb(t) AS period
                    FROM /*schema.*/attempt AS t
                    WHERE t.job_id = ANY (ARRAY[e.id])
                    ORDER BY t.token DESC
                    LIMIT 20
                ) AS a
                UNION ALL
                SELECT p.token, to_jsonb(p)
            ) AS h
        )
    FROM ended AS e
    JOIN period AS p ON p.job_id = e.id
    WHERE e.verdict = 'failed'
)
SELECT
    coalesce($5, statement_timestamp()) AS now,
    (SELECT count(*) FROM expired) AS found,
    e.id, e.token, e.queue, e.verdict AS state, e.done_reason, e.claimed_by, e.losses,
    e.worker_losses_now AS worker_losses, e.task, e.attempt, e.max_attempts, e.key, e.meta
FROM (SELECT) AS always
LEFT JOIN ended AS e ON true
