-- $1 ids, $2 tokens, $3 owners, $4 reasons, $5 results, $6 logs, $7 filed_on, $8 now, $9 channel
-- Complete these leases' attempts if their jobs have no key, as nearly all do; settle.sql takes the
-- rest. Notifies callers waiting for one. Returns 1-based places in the arrays.
-- Uses job_pkey; locks jobs in the order given, which is by id.
WITH asked AS MATERIALIZED (
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::jsonb[], $6::text[])
        WITH ORDINALITY AS a (id, token, claimed_by, reason, result, log, place)
), gone AS (
    DELETE FROM /*schema.*/job AS j
    USING asked AS a
    WHERE j.id = ANY (ARRAY[a.id]) AND j.token = a.token AND j.claimed_by = a.claimed_by AND j.key IS NULL
    RETURNING
        j.id, j.token, j.run_at, j.created_at, j.claimed_at, j.lease_expires_at, j.claimed_by,
        j.items, j.priority, j.attempt, j.max_attempts, j.losses, j.queue, j.task, j.renewals,
        j.args, j.cursor, j.progress, j.meta, j.awaited, a.reason, a.result, a.log, a.place,
        coalesce($8::timestamptz, clock_timestamp()) AS ended_at
), filed AS (
    INSERT INTO /*schema.*/job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        items, priority, attempt, max_attempts, losses, state, queue, task, done_reason,
        args, result, cursor, progress, meta
    )
    SELECT
        g.id, g.token, g.run_at, g.created_at, g.claimed_at, g.lease_expires_at, g.ended_at,
        g.claimed_by, coalesce($7::date, (g.ended_at AT TIME ZONE 'UTC')::date), g.items,
        g.priority, g.attempt, g.max_attempts, g.losses, 'completed', g.queue, g.task, g.reason,
        g.args, g.result, g.cursor, g.progress, g.meta
    FROM gone AS g
), kept AS (
    INSERT INTO /*schema.*/attempt (
        job_id, token, due_at, started_at, ended_at, claimed_by, filed_on, renewals, attempt, late,
        outcome, queue, task, log
    )
    SELECT
        g.id, g.token, g.run_at, g.claimed_at, g.ended_at, g.claimed_by,
        coalesce($7, (g.ended_at AT TIME ZONE 'UTC')::date), greatest(g.renewals, 0), g.attempt,
        g.lease_expires_at <= g.ended_at, 'completed', g.queue, g.task, g.log
    FROM gone AS g
)
SELECT g.place, g.lease_expires_at <= g.ended_at AS late,
    -- A waiting caller also polls: a full NOTIFY queue must not keep a job from ending.
    CASE WHEN g.awaited AND pg_notification_queue_usage() < 0.5
        THEN pg_notify($9::text, g.id::text)
    END AS notified
FROM gone AS g
