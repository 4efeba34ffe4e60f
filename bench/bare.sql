-- The bare engine: the least that a fenced queue with history does, and nothing more. One
-- lane, moved by the whole lease, an archive and an attempt row, result NULL. Frozen: the
-- bars are ratios to this file, so it changes only with a reason in docs/design/.
-- name: schema
CREATE SCHEMA bare;
CREATE TABLE bare.job (
    id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token            bigint      NOT NULL DEFAULT 0,
    run_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz,
    lease_expires_at timestamptz,
    claimed_by       uuid,
    priority         smallint    NOT NULL,
    attempt          smallint    NOT NULL DEFAULT 0,
    max_attempts     smallint    NOT NULL DEFAULT 3,
    state            text        NOT NULL DEFAULT 'queued',
    queue            text        NOT NULL,
    task             text        NOT NULL,
    args             jsonb       NOT NULL
) WITH (fillfactor = 85);
CREATE INDEX ON bare.job (queue, priority DESC, run_at, id) WHERE state = 'queued';
CREATE INDEX ON bare.job (lease_expires_at) WHERE state = 'running';
CREATE TABLE bare.job_archive (
    id               bigint      NOT NULL,
    token            bigint      NOT NULL,
    run_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz NOT NULL,
    lease_expires_at timestamptz NOT NULL,
    ended_at         timestamptz NOT NULL,
    claimed_by       uuid        NOT NULL,
    filed_on         date        NOT NULL,
    priority         smallint    NOT NULL,
    attempt          smallint    NOT NULL,
    max_attempts     smallint    NOT NULL,
    state            text        NOT NULL,
    queue            text        NOT NULL,
    task             text        NOT NULL,
    done_reason      text        NOT NULL,
    args             jsonb       NOT NULL,
    result           jsonb,
    PRIMARY KEY (id, filed_on)
) PARTITION BY RANGE (filed_on);
CREATE TABLE bare.job_archive_days PARTITION OF bare.job_archive FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE TABLE bare.attempt (
    job_id     bigint      NOT NULL,
    token      bigint      NOT NULL,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL,
    claimed_by uuid        NOT NULL,
    filed_on   date        NOT NULL,
    attempt    smallint    NOT NULL,
    outcome    text        NOT NULL,
    queue      text        NOT NULL,
    task       text        NOT NULL,
    PRIMARY KEY (job_id, token, filed_on)
) PARTITION BY RANGE (filed_on);
CREATE TABLE bare.attempt_days PARTITION OF bare.attempt FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
-- name: enqueue
INSERT INTO bare.job (queue, task, args, priority, created_at, run_at)
SELECT a.queue, a.task, a.args, 5, clock_timestamp(), clock_timestamp()
FROM unnest($1::text[], $2::text[], $3::jsonb[]) AS a (queue, task, args)
RETURNING id
-- name: claim
WITH taken AS MATERIALIZED (
    SELECT j.id
    FROM bare.job AS j
    WHERE j.state = 'queued' AND j.queue = $1::text AND j.priority = 5
        AND j.run_at <= statement_timestamp()
    ORDER BY j.run_at, j.id
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED
)
UPDATE bare.job AS j SET
    state = 'running', token = j.token + 1, attempt = j.attempt + 1, claimed_by = $3::uuid,
    claimed_at = clock_timestamp(), lease_expires_at = clock_timestamp() + interval '30 seconds'
FROM taken AS t
WHERE j.id = t.id
RETURNING j.*
-- name: renew
UPDATE bare.job AS j SET lease_expires_at = clock_timestamp() + interval '30 seconds'
FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS a (id, token, claimed_by)
WHERE j.id = a.id AND j.token = a.token AND j.claimed_by = a.claimed_by
    AND j.lease_expires_at > clock_timestamp()
RETURNING j.id
-- name: settle
WITH gone AS (
    DELETE FROM bare.job AS j
    USING unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS a (id, token, claimed_by)
    WHERE j.id = a.id AND j.token = a.token AND j.claimed_by = a.claimed_by
    RETURNING j.*, clock_timestamp() AS ended_at, (clock_timestamp() AT TIME ZONE 'UTC')::date AS filed_on
), filed AS (
    INSERT INTO bare.job_archive (
        id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, filed_on,
        priority, attempt, max_attempts, state, queue, task, done_reason, args
    )
    SELECT
        g.id, g.token, g.run_at, g.created_at, g.claimed_at, g.lease_expires_at, g.ended_at,
        g.claimed_by, g.filed_on, g.priority, g.attempt, g.max_attempts, 'completed', g.queue,
        g.task, 'worker_done', g.args
    FROM gone AS g
), kept AS (
    INSERT INTO bare.attempt (
        job_id, token, started_at, ended_at, claimed_by, filed_on, attempt, outcome, queue, task
    )
    SELECT
        g.id, g.token, g.claimed_at, g.ended_at, g.claimed_by, g.filed_on, g.attempt, 'completed',
        g.queue, g.task
    FROM gone AS g
)
SELECT g.id FROM gone AS g
