-- The whole schema as the migrations make it, to be read in one go.
--
-- No code loads this file; a test holds it against the sum of the migrations. The schema
-- itself and schema_version are made by whoever migrates; partitions by upkeep, one per day.

-- Which migrations were applied, and whether an older release can live with them.
CREATE TABLE /*schema.*/schema_version (
    version    integer     NOT NULL,
    name       text        NOT NULL,
    breaking   boolean     NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT schema_version_pkey PRIMARY KEY (version)
);

CREATE SEQUENCE /*schema.*/job_id_seq AS bigint;

-- Only what is queued or running. Small, churning: vacuumed early and often. Columns that are
-- always there come first: behind a NULL their place in the row has to be searched for.
CREATE TABLE /*schema.*/job (
    id               bigint      NOT NULL DEFAULT nextval('/*schema.*/job_id_seq'),
    token            bigint      NOT NULL DEFAULT 0,
    run_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    renewals         integer     NOT NULL DEFAULT 0,
    items            integer     NOT NULL DEFAULT 0,
    priority         smallint    NOT NULL,
    attempt          smallint    NOT NULL DEFAULT 0,
    max_attempts     smallint    NOT NULL,
    losses           smallint    NOT NULL DEFAULT 0,
    max_losses       smallint    NOT NULL,
    returned         boolean     NOT NULL DEFAULT false,
    held             boolean     NOT NULL DEFAULT false,
    limited          boolean     NOT NULL DEFAULT false,
    cancel_requested boolean     NOT NULL DEFAULT false,
    waited           boolean     NOT NULL DEFAULT false,
    state            text        NOT NULL DEFAULT 'queued',
    queue            text        NOT NULL,
    task             text        NOT NULL,
    args             jsonb       NOT NULL,
    claimed_at       timestamptz,
    renewed_at       timestamptz,
    lease_expires_at timestamptz,
    claimed_by       uuid,
    lease            interval,
    target           integer,
    key              text,
    key_for          interval,
    cursor           jsonb,
    progress         jsonb,
    meta             jsonb,
    worker_losses    smallint    NOT NULL DEFAULT 0,
    deaths           smallint    NOT NULL DEFAULT 0,
    suspect          boolean     NOT NULL DEFAULT false,
    CONSTRAINT job_pkey PRIMARY KEY (id),
    CONSTRAINT job_priority_check CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT job_state_check CHECK (
        CASE state
            WHEN 'queued' THEN claimed_by IS NULL AND lease_expires_at IS NULL
            WHEN 'running' THEN claimed_by IS NOT NULL AND lease_expires_at IS NOT NULL AND NOT held
            ELSE false
        END
    )
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 1,
    autovacuum_analyze_scale_factor = 0.1
);

ALTER SEQUENCE /*schema.*/job_id_seq OWNED BY /*schema.*/job.id;

-- A lane is one (queue, priority) of this index: what was given back with its old run_at,
-- few rows, read without a floor; then the rest, read from a floor (run_at, id) on.
CREATE INDEX job_lane_idx ON /*schema.*/job (queue, priority DESC, returned DESC, run_at, id)
    WHERE NOT held AND state = 'queued';
CREATE INDEX job_expiry_idx ON /*schema.*/job (lease_expires_at)
    WHERE state = 'running';
-- Counted by claims from limited queues; empty where no limit is set.
CREATE INDEX job_limited_idx ON /*schema.*/job (queue)
    WHERE limited AND state = 'running';

CREATE TABLE /*schema.*/job_archive (
    id               bigint      NOT NULL,
    token            bigint      NOT NULL,
    run_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz,
    lease_expires_at timestamptz,
    ended_at         timestamptz NOT NULL,
    claimed_by       uuid,
    filed_on         date        NOT NULL,
    items            integer     NOT NULL,
    priority         smallint    NOT NULL,
    attempt          smallint    NOT NULL,
    max_attempts     smallint    NOT NULL,
    losses           smallint    NOT NULL,
    state            text        NOT NULL,
    queue            text        NOT NULL,
    task             text        NOT NULL,
    key              text,
    done_reason      text        NOT NULL,
    args             jsonb       NOT NULL,
    result           jsonb,
    cursor           jsonb,
    progress         jsonb,
    meta             jsonb,
    CONSTRAINT job_archive_pkey PRIMARY KEY (id, filed_on),
    CONSTRAINT job_archive_state_check CHECK (state IN ('completed', 'cancelled'))
) PARTITION BY RANGE (filed_on);

-- The dead letters. A retry brings a row back to job under its id.
CREATE TABLE /*schema.*/job_failed (
    id               bigint      NOT NULL,
    token            bigint      NOT NULL,
    run_at           timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    claimed_at       timestamptz,
    lease_expires_at timestamptz,
    ended_at         timestamptz NOT NULL,
    claimed_by       uuid,
    lease            interval,
    items            integer     NOT NULL,
    target           integer,
    priority         smallint    NOT NULL,
    attempt          smallint    NOT NULL,
    max_attempts     smallint    NOT NULL,
    losses           smallint    NOT NULL,
    max_losses       smallint    NOT NULL,
    queue            text        NOT NULL,
    task             text        NOT NULL,
    key              text,
    key_for          interval,
    done_reason      text        NOT NULL,
    error_type       text,
    error_message    text,
    error_signature  text,
    args             jsonb       NOT NULL,
    cursor           jsonb,
    progress         jsonb,
    meta             jsonb,
    worker_losses    smallint    NOT NULL DEFAULT 0,
    deaths           smallint    NOT NULL DEFAULT 0,
    history          jsonb,
    CONSTRAINT job_failed_pkey PRIMARY KEY (id)
);

CREATE INDEX job_failed_signature_idx ON /*schema.*/job_failed (task, error_signature, id);
CREATE INDEX job_failed_ended_idx ON /*schema.*/job_failed (ended_at);

-- One row per ended running period, named (job_id, token).
CREATE TABLE /*schema.*/attempt (
    job_id          bigint      NOT NULL,
    token           bigint      NOT NULL,
    due_at          timestamptz NOT NULL,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz NOT NULL,
    claimed_by      uuid        NOT NULL,
    filed_on        date        NOT NULL,
    renewals        integer     NOT NULL,
    repeats         integer     NOT NULL DEFAULT 0,
    attempt         smallint    NOT NULL,
    late            boolean     NOT NULL,
    outcome         text        NOT NULL,
    queue           text        NOT NULL,
    task            text        NOT NULL,
    error_type      text,
    error_message   text,
    error_trace     text,
    error_signature text,
    log             text,
    refused         jsonb,
    CONSTRAINT attempt_pkey PRIMARY KEY (job_id, token, filed_on),
    CONSTRAINT attempt_outcome_check CHECK (outcome IN (
        'completed', 'failed', 'timed_out', 'snoozed', 'released', 'cancelled', 'lost', 'revoked'
    ))
) PARTITION BY RANGE (filed_on);

CREATE TABLE /*schema.*/job_item (
    job_id bigint NOT NULL,
    key    text   NOT NULL,
    data   jsonb,
    CONSTRAINT job_item_pkey PRIMARY KEY (job_id, key)
);

-- Every key from enqueue on. until is NULL while the job lives, then its end + key_for.
CREATE TABLE /*schema.*/job_key (
    task   text    NOT NULL,
    key    text    NOT NULL,
    job_id bigint  NOT NULL,
    seen   integer NOT NULL DEFAULT 1,
    until  timestamptz,
    CONSTRAINT job_key_pkey PRIMARY KEY (task, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX job_key_until_idx ON /*schema.*/job_key (until) WHERE until IS NOT NULL;

-- An absent row means defaults. The row '*' speaks for the whole installation.
CREATE TABLE /*schema.*/queue (
    name          text    NOT NULL,
    paused_at     timestamptz,
    paused_until  timestamptz,
    paused_by     text,
    paused_reason text,
    max_running   integer,
    limited_at    timestamptz,
    adopted       boolean NOT NULL DEFAULT true,
    lease         interval,
    max_attempts  smallint,
    changed_at    timestamptz NOT NULL,
    CONSTRAINT queue_pkey PRIMARY KEY (name),
    CONSTRAINT queue_max_running_check CHECK (max_running >= 0)
);

CREATE TABLE /*schema.*/worker (
    id              uuid        NOT NULL,
    name            text        NOT NULL,
    host            text        NOT NULL,
    pid             integer     NOT NULL,
    version         text        NOT NULL,
    language        text        NOT NULL,
    state           text        NOT NULL,
    drain_requested boolean     NOT NULL DEFAULT false,
    queues          text[]      NOT NULL,
    slots           integer     NOT NULL,
    running         integer     NOT NULL DEFAULT 0,
    started_at      timestamptz NOT NULL,
    beat_at         timestamptz NOT NULL,
    meta            jsonb,
    CONSTRAINT worker_pkey PRIMARY KEY (id),
    CONSTRAINT worker_state_check CHECK (state IN ('active', 'draining', 'offline'))
) WITH (fillfactor = 70);

CREATE TABLE /*schema.*/setting (
    name       text        NOT NULL,
    value      jsonb       NOT NULL,
    changed_at timestamptz NOT NULL,
    changed_by text        NOT NULL,
    CONSTRAINT setting_pkey PRIMARY KEY (name)
);

CREATE TABLE /*schema.*/audit (
    id     bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at     timestamptz NOT NULL,
    actor  text        NOT NULL,
    source text        NOT NULL,
    action text        NOT NULL,
    target text        NOT NULL,
    reason text,
    before jsonb,
    after  jsonb,
    CONSTRAINT audit_pkey PRIMARY KEY (id)
);

CREATE INDEX audit_target_idx ON /*schema.*/audit (target, id);

-- The definition (when, what, policy) belongs to the program that declares it, or to whoever made
-- it at run time; what an operator sets over it has columns of its own. A change of the definition
-- raises version. next_at is the first tick that is not accounted for.
CREATE TABLE /*schema.*/schedule (
    name              text        NOT NULL,
    version           integer     NOT NULL DEFAULT 1,
    cron              text,
    every             interval,
    at                timestamptz,
    zone              text        NOT NULL,
    task              text        NOT NULL,
    queue             text        NOT NULL,
    args              jsonb       NOT NULL,
    priority          smallint    NOT NULL,
    max_attempts      smallint,
    max_losses        smallint,
    lease             interval,
    target            integer,
    meta              jsonb,
    missed            text        NOT NULL,
    missed_within     interval    NOT NULL,
    missed_most       integer     NOT NULL,
    overlap           text        NOT NULL,
    jitter            interval    NOT NULL,
    program           text,
    program_version   bigint[]    NOT NULL DEFAULT '{}',
    set_missed        text,
    set_missed_within interval,
    set_missed_most   integer,
    set_jitter        interval,
    paused_at         timestamptz,
    paused_until      timestamptz,
    paused_by         text,
    paused_reason     text,
    retired_at        timestamptz,
    next_at           timestamptz,
    last_at           timestamptz,
    last_job_id       bigint,
    created_at        timestamptz NOT NULL,
    changed_at        timestamptz NOT NULL,
    CONSTRAINT schedule_pkey PRIMARY KEY (name),
    CONSTRAINT schedule_when_check CHECK (num_nonnulls(cron, every, at) = 1),
    CONSTRAINT schedule_missed_check CHECK (missed IN ('skip', 'latest', 'all')),
    CONSTRAINT schedule_set_missed_check CHECK (set_missed IN ('skip', 'latest', 'all')),
    CONSTRAINT schedule_overlap_check CHECK (overlap IN ('allow', 'skip')),
    CONSTRAINT schedule_retired_check CHECK (retired_at IS NULL OR next_at IS NULL)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX schedule_due_idx ON /*schema.*/schedule (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedule_program_idx ON /*schema.*/schedule (program) WHERE retired_at IS NULL;

-- One row per tick, whatever becomes of it: the key is why no tick makes two jobs. It outlives
-- its schedule, so that one made anew under the same name repeats nothing.
CREATE TABLE /*schema.*/schedule_tick (
    schedule    text        NOT NULL,
    fire_at     timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    job_id      bigint,
    outcome     text        NOT NULL,
    reason      text,
    CONSTRAINT schedule_tick_pkey PRIMARY KEY (schedule, fire_at),
    CONSTRAINT schedule_tick_outcome_check CHECK (
        CASE outcome
            WHEN 'fired' THEN job_id IS NOT NULL AND (reason IS NULL OR reason IN ('late', 'backfill'))
            WHEN 'skipped' THEN job_id IS NULL AND reason IN ('missed', 'overlap', 'paused')
            ELSE false
        END
    )
);

-- done is the place of the last item that has its outcome; the items behind it are to come. next_at
-- is when the next chunk is due: the rate is kept by it, whoever does the chunks. most is how many
-- the next one may take, where a larger one met what it could not pass.
CREATE TABLE /*schema.*/operation (
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    kind       text        NOT NULL,
    state      text        NOT NULL,
    filter     jsonb       NOT NULL,
    changes    jsonb,
    rate       integer     NOT NULL,
    total      integer     NOT NULL DEFAULT 0,
    done       integer     NOT NULL DEFAULT 0,
    most       integer,
    outcomes   jsonb       NOT NULL DEFAULT '{}',
    actor      text        NOT NULL,
    source     text        NOT NULL,
    reason     text,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at   timestamptz,
    next_at    timestamptz,
    CONSTRAINT operation_pkey PRIMARY KEY (id),
    CONSTRAINT operation_kind_check
        CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move', 'backfill')),
    CONSTRAINT operation_rate_check CHECK (rate > 0),
    CONSTRAINT operation_state_check CHECK (
        CASE state
            WHEN 'pending' THEN started_at IS NULL AND ended_at IS NULL AND next_at IS NOT NULL
            WHEN 'running' THEN started_at IS NOT NULL AND ended_at IS NULL AND next_at IS NOT NULL
            WHEN 'paused' THEN ended_at IS NULL AND next_at IS NULL
            WHEN 'done' THEN ended_at IS NOT NULL AND next_at IS NULL AND done = total
            WHEN 'aborted' THEN ended_at IS NOT NULL AND next_at IS NULL
            ELSE false
        END
    )
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX operation_due_idx ON /*schema.*/operation (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX operation_ended_idx ON /*schema.*/operation (ended_at) WHERE ended_at IS NOT NULL;

-- The members, in the order in which they are done; outcome is NULL until then. A row is changed
-- once, and has room for that beside it.
CREATE TABLE /*schema.*/operation_item (
    operation_id bigint      NOT NULL,
    job_id       bigint,
    place        integer     NOT NULL,
    outcome      text,
    fire_at      timestamptz,
    CONSTRAINT operation_item_pkey PRIMARY KEY (operation_id, place)
) WITH (fillfactor = 50);

CREATE INDEX operation_item_job_idx ON /*schema.*/operation_item (job_id, operation_id);

-- What programs outside may do over the server. Of a secret only its SHA-256 is here, and how it
-- begins. What is allowed: each scope, in each queue that a pattern matches.
CREATE TABLE /*schema.*/api_token (
    id           bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    name         text        NOT NULL,
    hint         text        NOT NULL,
    hash         bytea       NOT NULL,
    scopes       text[]      NOT NULL,
    queues       text[]      NOT NULL,
    created_at   timestamptz NOT NULL,
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    CONSTRAINT api_token_pkey PRIMARY KEY (id),
    CONSTRAINT api_token_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_token_revoked_check CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX api_token_hash_idx ON /*schema.*/api_token (hash);

-- The first answer to each request with an idempotency key, in the transaction of what it did;
-- answer is NULL inside of that alone.
CREATE TABLE /*schema.*/idempotency (
    actor      text        NOT NULL,
    key        text        NOT NULL,
    digest     text        NOT NULL,
    answer     jsonb,
    created_at timestamptz NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (actor, key)
);

CREATE INDEX idempotency_created_idx ON /*schema.*/idempotency (created_at);

-- Per minute in which attempts ended, by queue and task, by each alone and of all ('' stands for
-- all): the outcomes, and how long attempts had waited (due to claimed) and run, summed in seconds
-- and counted in buckets. The buckets' bounds are in the code, and fixed.
CREATE TABLE /*schema.*/rollup_minute (
    minute    timestamptz      NOT NULL,
    queue     text             NOT NULL,
    task      text             NOT NULL,
    completed integer          NOT NULL,
    failed    integer          NOT NULL,
    timed_out integer          NOT NULL,
    snoozed   integer          NOT NULL,
    released  integer          NOT NULL,
    cancelled integer          NOT NULL,
    lost      integer          NOT NULL,
    revoked   integer          NOT NULL,
    wait_sum  double precision NOT NULL,
    run_sum   double precision NOT NULL,
    waits     integer[]        NOT NULL,
    runs      integer[]        NOT NULL,
    CONSTRAINT rollup_minute_pkey PRIMARY KEY (queue, task, minute)
);

CREATE INDEX rollup_minute_minute_idx ON /*schema.*/rollup_minute (minute);

-- How far minutes are folded, in one row that one folder at a time has locked. Before final_to
-- they are whole; up to marked_to they are folded once more when every transaction before mark
-- has ended; up to folded_to they may lack what commits late.
CREATE TABLE /*schema.*/rollup_state (
    alone     boolean     NOT NULL DEFAULT true,
    final_to  timestamptz NOT NULL,
    marked_to timestamptz NOT NULL,
    folded_to timestamptz NOT NULL,
    mark      xid8        NOT NULL,
    CONSTRAINT rollup_state_pkey PRIMARY KEY (alone),
    CONSTRAINT rollup_state_check CHECK (alone AND final_to <= marked_to AND marked_to <= folded_to)
) WITH (fillfactor = 50);

CREATE INDEX attempt_ended_at_idx ON /*schema.*/attempt (ended_at);
CREATE INDEX job_held_idx ON /*schema.*/job (queue) WHERE held AND state = 'queued';
CREATE INDEX job_failed_queue_idx ON /*schema.*/job_failed (queue);
-- Without a signature counts as an empty one: an order after IS NULL is none that the planner knows.
CREATE INDEX job_failed_group_idx
    ON /*schema.*/job_failed (task, coalesce(error_signature, ''), ended_at, id);
CREATE INDEX job_suspect_idx ON /*schema.*/job (queue) WHERE suspect AND NOT held AND state = 'queued';
