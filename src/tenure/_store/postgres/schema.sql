-- The whole schema as the migrations make it.
--
-- `tenure doctor` compares a database with this file, and a test compares the migrations with it.
-- `tenure db migrate` creates the schema and schema_version; maintenance creates one partition per day.

-- Which migrations were applied, and whether an older release can live with them.
CREATE TABLE /*schema.*/schema_version (
    version    integer     NOT NULL,
    name       text        NOT NULL,
    breaking   boolean     NOT NULL,
    applied_at timestamptz NOT NULL,
    CONSTRAINT schema_version_pkey PRIMARY KEY (version)
);

CREATE SEQUENCE /*schema.*/job_id_seq AS bigint;

-- Queued and running jobs only. The table is small and changes all the time, so it is vacuumed early
-- and often. Columns that are never NULL come first: PostgreSQL finds them at a fixed offset.
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
    worker_losses    smallint    NOT NULL DEFAULT 0,
    deaths           smallint    NOT NULL DEFAULT 0,
    suspect          boolean     NOT NULL DEFAULT false,
    returned         boolean     NOT NULL DEFAULT false,
    held             boolean     NOT NULL DEFAULT false,
    limited          boolean     NOT NULL DEFAULT false,
    cancel_requested boolean     NOT NULL DEFAULT false,
    awaited          boolean     NOT NULL DEFAULT false,
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
    CONSTRAINT job_pkey PRIMARY KEY (id),
    CONSTRAINT job_priority_check CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT job_state_check CHECK (
        CASE state
            WHEN 'queued' THEN claimed_by IS NULL AND lease_expires_at IS NULL
            WHEN 'running' THEN claimed_by IS NOT NULL AND lease_expires_at IS NOT NULL AND NOT held
            ELSE false
        END
    ),
    CONSTRAINT job_counts_check CHECK (
        id > 0 AND token BETWEEN 0 AND 4611686018427387904
        AND attempt BETWEEN 0 AND CASE state WHEN 'queued' THEN 32766 ELSE 32767 END AND max_attempts > 0
        AND losses BETWEEN 0 AND 32766 AND max_losses >= 0
        AND worker_losses BETWEEN 0 AND 32766 AND deaths BETWEEN 0 AND 32766
        AND renewals BETWEEN -1 AND 2147483646 AND items >= 0 AND target > 0
    ),
    CONSTRAINT job_times_check CHECK (
        run_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND created_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND claimed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND renewed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        AND lease_expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    ),
    CONSTRAINT job_lengths_check CHECK (
        lease BETWEEN '1 second' AND '1 day' AND extract(year FROM lease) = 0
        AND extract(month FROM lease) = 0 AND extract(day FROM lease) = 0
        AND key_for BETWEEN '0' AND '36500 days' AND extract(year FROM key_for) = 0
        AND extract(month FROM key_for) = 0 AND extract(day FROM key_for) BETWEEN 0 AND 36500
    ),
    CONSTRAINT job_names_check CHECK (
        char_length(queue) BETWEEN 1 AND 200 AND char_length(task) BETWEEN 1 AND 200
        AND char_length(key) BETWEEN 1 AND 400
    ),
    CONSTRAINT job_payload_check CHECK (
        jsonb_typeof(args) = 'object' AND jsonb_typeof(meta) = 'object'
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

-- A lane is one (queue, priority) of this index. Released jobs with their old run_at come first: they
-- are few, and claims read them without a floor. Claims read the rest from a floor (run_at, id) on.
CREATE INDEX job_lane_idx ON /*schema.*/job (queue, priority DESC, returned DESC, run_at, id)
    WHERE NOT held AND state = 'queued';
CREATE INDEX job_expiry_idx ON /*schema.*/job (lease_expires_at)
    WHERE state = 'running';
-- Claims from limited queues count by this index. It is empty where no limit is set.
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

-- The dead letters. A retry moves a row back to job, with the same id.
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
    worker_losses    smallint    NOT NULL DEFAULT 0,
    deaths           smallint    NOT NULL DEFAULT 0,
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
    history          jsonb,
    CONSTRAINT job_failed_pkey PRIMARY KEY (id)
);

CREATE INDEX job_failed_signature_idx ON /*schema.*/job_failed (task, error_signature, id);
CREATE INDEX job_failed_ended_idx ON /*schema.*/job_failed (ended_at);

-- One row per attempt that has ended. (job_id, token) identifies it.
CREATE TABLE /*schema.*/attempt (
    job_id          bigint      NOT NULL,
    token           bigint      NOT NULL,
    due_at          timestamptz NOT NULL,
    started_at      timestamptz NOT NULL,
    ended_at        timestamptz NOT NULL,
    claimed_by      uuid        NOT NULL,
    filed_on        date        NOT NULL,
    renewals        integer     NOT NULL,
    settle_repeats  integer     NOT NULL DEFAULT 0,
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
    refused_result  jsonb,
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

-- The keys of deduplication. expires_at is NULL while the job lives, then its end + key_for.
CREATE TABLE /*schema.*/job_key (
    task       text    NOT NULL,
    key        text    NOT NULL,
    job_id     bigint  NOT NULL,
    hits       integer NOT NULL DEFAULT 1,
    expires_at timestamptz,
    CONSTRAINT job_key_pkey PRIMARY KEY (task, key),
    CONSTRAINT job_key_values_check CHECK (
        job_id >= 0 AND hits >= 0 AND expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    )
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX job_key_expires_idx ON /*schema.*/job_key (expires_at) WHERE expires_at IS NOT NULL;

-- A queue without a row has the defaults. The row '*' applies to the whole installation.
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
    quotas        jsonb   NOT NULL DEFAULT '{}',
    CONSTRAINT queue_pkey PRIMARY KEY (name),
    CONSTRAINT queue_max_running_check CHECK (max_running >= 0)
);

CREATE TABLE /*schema.*/worker (
    id                uuid        NOT NULL,
    name              text        NOT NULL,
    host              text        NOT NULL,
    pid               integer     NOT NULL,
    version           text        NOT NULL,
    language          text        NOT NULL,
    state             text        NOT NULL,
    drain_requested   boolean     NOT NULL DEFAULT false,
    queues            text[]      NOT NULL,
    slots             integer     NOT NULL,
    running           integer     NOT NULL DEFAULT 0,
    started_at        timestamptz NOT NULL,
    last_heartbeat_at timestamptz NOT NULL,
    meta              jsonb,
    listed            text[],
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
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor  text        NOT NULL,
    source text        NOT NULL,
    action text        NOT NULL,
    target text        NOT NULL,
    reason text,
    before jsonb,
    after  jsonb,
    address text,
    CONSTRAINT audit_pkey PRIMARY KEY (id)
);

CREATE INDEX audit_target_idx ON /*schema.*/audit (target, id);

-- The definition (when, what, policy) belongs to the program that declares it, or to the caller that
-- created it at run time. An operator's overrides have columns of their own (set_…). A change of the
-- definition raises version. next_at is the first tick that has no row in schedule_tick.
CREATE TABLE /*schema.*/schedule (
    name              text        NOT NULL,
    version           integer     NOT NULL DEFAULT 1,
    cron              text,
    every             interval,
    at                timestamptz,
    timezone          text        NOT NULL,
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
    missed_limit       integer     NOT NULL,
    overlap           text        NOT NULL,
    jitter            interval    NOT NULL,
    program           text,
    program_version   bigint[]    NOT NULL DEFAULT '{}',
    set_missed        text,
    set_missed_within interval,
    set_missed_limit   integer,
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

-- One row per tick, fired or skipped. Its primary key keeps a tick from making two jobs. Rows outlive
-- their schedule, so that a new schedule with the same name repeats nothing.
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

-- done is the place of the last item that has an outcome. next_at is when the next chunk is due: it
-- keeps the rate, whichever process runs the chunks. chunk_limit is the size of the next chunk after a
-- larger one met a locked row or a value that the database refused. waiting holds the jobs of an erasure
-- that ran, or were locked, at their turn: it ends when they are erased, too.
CREATE TABLE /*schema.*/operation (
    id          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    kind        text        NOT NULL,
    state       text        NOT NULL,
    filter      jsonb       NOT NULL,
    changes     jsonb,
    rate        integer     NOT NULL,
    total       integer     NOT NULL DEFAULT 0,
    done        integer     NOT NULL DEFAULT 0,
    chunk_limit integer,
    outcomes    jsonb       NOT NULL DEFAULT '{}',
    actor       text        NOT NULL,
    source      text        NOT NULL,
    reason      text,
    created_at  timestamptz NOT NULL,
    started_at  timestamptz,
    ended_at    timestamptz,
    next_at     timestamptz,
    waiting     bigint[],
    CONSTRAINT operation_pkey PRIMARY KEY (id),
    CONSTRAINT operation_kind_check
        CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move', 'backfill', 'erase')),
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

-- The members of an operation, in the order of their processing. outcome is NULL until then. Each row
-- changes once, and the fillfactor leaves room for that on its page.
CREATE TABLE /*schema.*/operation_item (
    operation_id bigint      NOT NULL,
    job_id       bigint,
    place        integer     NOT NULL,
    outcome      text,
    fire_at      timestamptz,
    CONSTRAINT operation_item_pkey PRIMARY KEY (operation_id, place)
) WITH (fillfactor = 50);

CREATE INDEX operation_item_job_idx ON /*schema.*/operation_item (job_id, operation_id);

-- The access tokens of the server. Of a secret, only its SHA-256 and its beginning are stored. A token
-- allows each of its scopes in each queue that one of its patterns matches. page_key seals its page
-- tokens.
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
    tasks        text[]      NOT NULL DEFAULT '{*}',
    quotas       jsonb       NOT NULL DEFAULT '{}',
    page_key     uuid        NOT NULL DEFAULT gen_random_uuid(),
    created_by_token bigint,
    CONSTRAINT api_token_pkey PRIMARY KEY (id),
    CONSTRAINT api_token_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_token_revoked_check CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX api_token_hash_idx ON /*schema.*/api_token (hash);

CREATE INDEX api_token_parent_idx ON /*schema.*/api_token (created_by_token)
WHERE created_by_token IS NOT NULL;

-- The sessions of the dashboard. Of a session's id in the cookie, only its SHA-256 is stored. A session
-- has the rights of its token, or its own if another system signed the user in.
CREATE TABLE /*schema.*/dashboard_session (
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    hash       bytea       NOT NULL,
    name       text        NOT NULL,
    provider   text        NOT NULL,
    token_id   bigint,
    scopes     text[],
    queues     text[],
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    idle       interval    NOT NULL,
    address    text,
    user_agent text,
    ended_at   timestamptz,
    ended_by   text,
    CONSTRAINT dashboard_session_pkey PRIMARY KEY (id),
    CONSTRAINT dashboard_session_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT dashboard_session_grant_check CHECK (
        token_id IS NOT NULL OR scopes IS NOT NULL AND queues IS NOT NULL
    ),
    CONSTRAINT dashboard_session_ended_check CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX dashboard_session_hash_idx ON /*schema.*/dashboard_session (hash);

CREATE INDEX dashboard_session_expires_idx ON /*schema.*/dashboard_session (expires_at);

-- Codes that sign a browser in once, by their SHA-256. Using one deletes its row.
CREATE TABLE /*schema.*/sign_in_code (
    hash       bytea       NOT NULL,
    token_id   bigint      NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sign_in_code_pkey PRIMARY KEY (hash),
    CONSTRAINT sign_in_code_hash_check CHECK (octet_length(hash) = 32)
);

CREATE INDEX sign_in_code_expires_idx ON /*schema.*/sign_in_code (expires_at);

-- The first answer to each request with an idempotency key, written in the transaction of the request.
-- answer is NULL only inside that transaction.
CREATE TABLE /*schema.*/idempotency (
    actor      text        NOT NULL,
    key        text        NOT NULL,
    digest     text        NOT NULL,
    answer     jsonb,
    created_at timestamptz NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (actor, key)
);

CREATE INDEX idempotency_created_idx ON /*schema.*/idempotency (created_at);

-- Counts per minute in which attempts ended: by queue and task, by queue, by task, and of all ('' stands
-- for all). Waits (from due to claimed) and running times are summed in seconds and counted in buckets.
-- The bounds of the buckets are in the code and never change.
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

-- The progress of the counts, in one row that one process at a time locks. Minutes before final_to are
-- complete. Those up to marked_to are counted once more when every transaction before mark has ended.
-- Those up to counted_until may lack attempts that commit late.
CREATE TABLE /*schema.*/rollup_state (
    singleton     boolean     NOT NULL DEFAULT true,
    final_to      timestamptz NOT NULL,
    marked_to     timestamptz NOT NULL,
    counted_until timestamptz NOT NULL,
    mark          xid8        NOT NULL,
    CONSTRAINT rollup_state_pkey PRIMARY KEY (singleton),
    CONSTRAINT rollup_state_check CHECK (singleton AND final_to <= marked_to AND marked_to <= counted_until)
) WITH (fillfactor = 50);

CREATE INDEX attempt_ended_at_idx ON /*schema.*/attempt (ended_at);
CREATE INDEX job_held_idx ON /*schema.*/job (queue) WHERE held AND state = 'queued';
CREATE INDEX job_failed_queue_idx ON /*schema.*/job_failed (queue);
-- No signature counts as an empty one: the planner cannot use the order of an index behind IS NULL.
CREATE INDEX job_failed_group_idx
    ON /*schema.*/job_failed (task, coalesce(error_signature, ''), ended_at, id);
CREATE INDEX job_suspect_idx ON /*schema.*/job (queue) WHERE suspect AND NOT held AND state = 'queued';

-- Enqueues a job from SQL: in a trigger, in psql, or in any language. It makes the checks of an enqueue
-- from Python, and writes the same row. It runs with the caller's rights. A caller's session may plan
-- with statistics of an empty table, so it never scans one. Its parameters are written as the server
-- prints them, because `doctor` compares them.
CREATE OR REPLACE FUNCTION /*schema.*/enqueue(
    task text,
    args jsonb DEFAULT '{}'::jsonb,
    queue text DEFAULT NULL::text,
    priority integer DEFAULT NULL::integer,
    run_at timestamp with time zone DEFAULT NULL::timestamp with time zone,
    delay interval DEFAULT NULL::interval,
    key text DEFAULT NULL::text,
    key_for interval DEFAULT NULL::interval,
    max_attempts integer DEFAULT NULL::integer,
    lease interval DEFAULT NULL::interval,
    timeout interval DEFAULT NULL::interval,
    expires_in interval DEFAULT NULL::interval,
    tags text[] DEFAULT NULL::text[],
    target integer DEFAULT NULL::integer,
    held boolean DEFAULT false
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    name_pattern CONSTANT text := '^[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*$';
    most_bytes CONSTANT integer := 262144;
    most_seconds CONSTANT numeric := 36500 * 86400.0;
    -- The longest duration that Python can represent.
    endless_seconds CONSTANT numeric := 999999999 * 86400.0;
    names CONSTANT text[] := '{delay,key_for,lease,timeout,expires_in}';
    lengths CONSTANT interval[] := ARRAY[delay, key_for, lease, timeout, expires_in];
    seconds numeric[] := '{}';
    meta jsonb;
    size integer;
    moment timestamptz;
    new_id bigint;
    problem text;
    fix text;
BEGIN
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 5);

    -- A day is 24 hours, whatever the session's time zone. At least one digit follows the point, as in
    -- a Python float, so that the stored options are the same.
    FOR i IN 1..5 LOOP
        CONTINUE WHEN lengths[i] IS NULL;
        IF NOT isfinite(lengths[i]) OR extract(year FROM lengths[i]) <> 0 OR extract(month FROM lengths[i]) <> 0 THEN
            problem := format('%s must be a fixed length of time, got %s', names[i], lengths[i]);
            fix := 'Write days, hours, minutes or seconds. Months and years vary in length.';
            EXIT;
        END IF;
        seconds[i] := trim_scale(extract(epoch FROM lengths[i]));
        seconds[i] := round(seconds[i], greatest(scale(seconds[i]), 1));
    END LOOP;

    IF problem IS NOT NULL THEN
        NULL;
    ELSIF task IS NULL OR length(task) > 200 OR task COLLATE "C" !~ name_pattern THEN
        problem := format(
            'task name must be 1 to 200 letters, digits and _ . : / < > @ -, beginning with a letter, digit or _, got %L',
            left(task, 60)
        );
        fix := 'Pass the name that a worker registers, such as ''mail.send''.';
    ELSIF task ~ '^tenure\.\w+$' THEN
        -- Only Python can check the arguments of HTTP, shell and other work.
        problem := format('task name must not be one that Tenure reserves, got %L', task);
        fix := 'Enqueue a task of your own that does the work, or use the HTTP API.';
    ELSIF length(queue) > 200 OR queue COLLATE "C" !~ name_pattern THEN
        problem := format(
            'queue name must be 1 to 200 letters, digits and _ . : / < > @ -, beginning with a letter, digit or _, got %L',
            left(queue, 60)
        );
        fix := 'Choose another name, such as ''mail''.';
    ELSIF args IS NULL OR jsonb_typeof(args) <> 'object' THEN
        problem := format('args must be a JSON object, got %s', coalesce(jsonb_typeof(args), 'NULL'));
        fix := 'Pass the arguments by name, as in jsonb_build_object(''to'', ''ada'').';
    ELSIF jsonb_path_exists(args, 'strict $.**{65}') THEN
        problem := 'args must be nested at most 64 deep, got more';
        fix := 'Flatten them.';
    ELSIF jsonb_path_exists(args, 'strict $.** ? (@ >= 9223372036854775808 || @ < -9223372036854775808)') THEN
        problem := 'args must not contain a number beyond 64 bits, got one';
        fix := 'Pass it as a string.';
    ELSIF priority NOT BETWEEN 0 AND 9 THEN
        problem := format('priority must be 0 to 9, got %s', priority);
        fix := '9 is the most urgent (default: 5).';
    ELSIF run_at IS NOT NULL AND delay IS NOT NULL THEN
        problem := 'run_at must be NULL if you pass delay, got both';
        fix := 'Pass one of them.';
    ELSIF run_at NOT BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00' THEN
        problem := format('run_at must be in the years 1 to 9999 in UTC, got %s', run_at);
        fix := 'Choose another time.';
    ELSIF seconds[1] > most_seconds THEN
        problem := format('delay must be at most 36500 days, got %s', delay);
        fix := 'Choose a shorter delay.';
    ELSIF length(key) NOT BETWEEN 1 AND 400 THEN
        problem := format('key must have 1 to 400 characters, got %s', length(key));
        fix := 'Shorten it, for example with md5().';
    ELSIF key_for IS NOT NULL AND key IS NULL THEN
        problem := 'key_for must be NULL without a key, got ' || key_for;
        fix := 'Pass a key, too.';
    ELSIF seconds[2] NOT BETWEEN 0 AND most_seconds THEN
        problem := format('key_for must be 0 to 36500 days, got %s', key_for);
        fix := 'Choose another duration.';
    ELSIF max_attempts NOT BETWEEN 1 AND 32767 THEN
        problem := format('max_attempts must be 1 to 32767, got %s', max_attempts);
        fix := 'Omit it to use the default of the queue or the installation.';
    ELSIF seconds[3] <= 6 OR seconds[3] > 86400 THEN
        problem := format('lease must be more than 6 seconds and at most 1 day, got %s', lease);
        fix := 'Workers renew the lease while a job runs (default: 30 s).';
    ELSIF seconds[4] <= 0 OR seconds[4] > endless_seconds THEN
        problem := format('timeout must be positive and at most 999999999 days, got %s', timeout);
        fix := 'Omit it to use the time limit of the task.';
    ELSIF seconds[5] <= 0 OR seconds[5] > endless_seconds THEN
        problem := format('expires_in must be positive and at most 999999999 days, got %s', expires_in);
        fix := 'Omit it for a job that does not expire.';
    ELSIF seconds[1] >= seconds[5] THEN
        problem := format('delay must be less than expires_in (%s), got %s', expires_in, delay);
        fix := 'expires_in counts from the enqueue, so the job would never run.';
    ELSIF extract(epoch FROM run_at) - extract(epoch FROM clock_timestamp()) >= seconds[5] THEN
        problem := format('run_at must be earlier than expires_in (%s) from now, got %s', expires_in, run_at);
        fix := 'expires_in counts from the enqueue, so the job would never run.';
    ELSIF array_ndims(tags) > 1 OR array_position(tags, NULL) IS NOT NULL THEN
        problem := format('tags must be a list of strings, got %s', left(tags::text, 60));
        fix := 'Write tags => ARRAY[''spring'', ''vip''].';
    ELSIF target < 1 THEN
        problem := format('target must be 1 to 2147483647, got %s', target);
        fix := 'Omit it for a job without a target.';
    END IF;

    IF problem IS NULL THEN
        meta := jsonb_strip_nulls(jsonb_build_object(
            'tags', CASE WHEN cardinality(tags) > 0 THEN to_jsonb(tags) END,
            'timeout', seconds[4],
            'expires_in', seconds[5]
        ));
        FOR i IN 1..2 LOOP
            size := octet_length(CASE i WHEN 1 THEN args ELSE meta END::text);
            -- The limit is for JSON without spaces, which is at least half as long.
            IF size BETWEEN most_bytes + 1 AND most_bytes * 2 THEN
                size := size - length(regexp_replace(
                    regexp_replace(CASE i WHEN 1 THEN args ELSE meta END::text, '"([^"\\]|\\.)*"', '', 'g'),
                    '[^ ]', '', 'g'
                ));
            END IF;
            IF size > most_bytes THEN
                problem := format(
                    '%s must be at most %s bytes of JSON, got %s',
                    CASE i WHEN 1 THEN 'args' ELSE 'tags' END, most_bytes, size
                );
                fix := 'Store the data elsewhere and pass a reference to it.';
                EXIT;
            END IF;
        END LOOP;
    END IF;

    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING
            MESSAGE = 'tenure: ' || problem, HINT = fix, ERRCODE = 'invalid_parameter_value';
    END IF;

    -- As in take_keys: a producer cannot choose ids, so the key is taken for job 0 first. If it is
    -- held, the row is written, too: the answer is as durable as the job.
    IF key IS NOT NULL THEN
        INSERT INTO /*schema.*/job_key AS k (task, key, job_id)
        VALUES (enqueue.task, enqueue.key, 0)
        ON CONFLICT (task, key) DO UPDATE SET
            hits = least(k.hits, 2147483646) + 1,
            (job_id, expires_at) = (
                -- One reading of the clock for both, after the wait for the key's row.
                SELECT CASE WHEN c.ended THEN 0 ELSE k.job_id END, CASE WHEN c.ended THEN NULL ELSE k.expires_at END
                FROM (SELECT coalesce(k.expires_at <= clock_timestamp(), false) AS ended OFFSET 0) AS c
            )
        RETURNING k.job_id INTO new_id;
        IF new_id <> 0 THEN
            RETURN new_id;
        END IF;
    END IF;

    moment := clock_timestamp();
    INSERT INTO /*schema.*/job AS j (
        queue, task, key, key_for, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta, held
    )
    VALUES (
        enqueue.queue, enqueue.task, enqueue.key, make_interval(secs => seconds[2]::double precision),
        enqueue.args, enqueue.priority, moment,
        greatest(enqueue.run_at, moment + make_interval(secs => greatest(seconds[1], 0)::double precision), moment),
        coalesce(
            enqueue.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = enqueue.queue),
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'),
            3
        ),
        coalesce(
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'),
            3
        ),
        make_interval(secs => seconds[3]::double precision), enqueue.target, nullif(meta, '{}'),
        coalesce(enqueue.held, false)
    )
    RETURNING j.id INTO new_id;

    IF key IS NOT NULL THEN
        UPDATE /*schema.*/job_key AS k SET job_id = new_id
        WHERE k.task = ANY (ARRAY[enqueue.task]) AND k.key = ANY (ARRAY[enqueue.key]);
    END IF;

    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    IF pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify(rtrim('/*schema.*/', '.') || '_wakeup', queue);
    END IF;
    RETURN new_id;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/enqueue FROM PUBLIC;

-- The rules for notices: which events call which receiver. An operator creates them, or a program
-- declares them in its code. url is NULL where the secret is the URL. The secret is only a name.
CREATE TABLE /*schema.*/notice_rule (
    name            text        NOT NULL,
    event           text        NOT NULL,
    queue           text        NOT NULL,
    task            text        NOT NULL,
    url             text,
    format          text        NOT NULL,
    secret          text        NOT NULL,
    group_for       interval    NOT NULL,
    threshold       interval,
    program         text,
    program_version bigint[]    NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL,
    created_by      text        NOT NULL,
    changed_at      timestamptz NOT NULL,
    CONSTRAINT notice_rule_pkey PRIMARY KEY (name),
    CONSTRAINT notice_rule_event_check
        CHECK (event IN ('failed', 'queue_behind', 'schedule_missed', 'worker_lost')),
    CONSTRAINT notice_rule_format_check CHECK (format IN ('standard', 'slack', 'pagerduty')),
    CONSTRAINT notice_rule_threshold_check CHECK ((threshold IS NOT NULL) = (event = 'queue_behind'))
);

-- The latest notice of each group of events with one cause: its job, and when that was or is due.
CREATE TABLE /*schema.*/notice_group (
    rule   text        NOT NULL,
    key    text        NOT NULL,
    job_id bigint      NOT NULL,
    due_at timestamptz NOT NULL,
    CONSTRAINT notice_group_pkey PRIMARY KEY (rule, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX notice_group_due_idx ON /*schema.*/notice_group (due_at);

-- Adds events to the notices of each rule that matches them: to the group's notice that no worker has
-- claimed yet, or to a new one. The first notice of a group is due now, the next one group_for after
-- the last. A rule with 100 groups within group_for counts further causes in one group, '~'.
-- Locks the rules in name order. So events of one rule wait for each other, and a group changes in one
-- transaction at a time. It never waits for a job's row, because settles come here with jobs locked.
CREATE OR REPLACE FUNCTION /*schema.*/notice_add(
    event text,
    facts jsonb
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    rule record;
    fact record;
    last record;
    moment timestamptz;
    due timestamptz;
    open_id bigint;
    added integer := 0;
    is_due boolean := false;
BEGIN
    FOR rule IN
        SELECT r.name, r.group_for, r.threshold,
            replace(replace(r.queue, '_', '\_'), '*', '%') AS queues,
            replace(replace(r.task, '_', '\_'), '*', '%') AS tasks
        FROM /*schema.*/notice_rule AS r
        WHERE r.event = notice_add.event AND EXISTS (
            SELECT FROM jsonb_to_recordset(facts) AS f (queue text, task text, waited double precision)
            WHERE f.queue LIKE replace(replace(r.queue, '_', '\_'), '*', '%')
                AND f.task LIKE replace(replace(r.task, '_', '\_'), '*', '%')
                AND (r.threshold IS NULL OR f.waited >= extract(epoch FROM r.threshold))
        )
        ORDER BY r.name
        FOR NO KEY UPDATE OF r
    LOOP
        moment := clock_timestamp();
        FOR fact IN
            SELECT
                f.key, min(f.queue) AS queue, min(f.task) AS task, sum(f.count) AS count,
                min(f.first_at) AS first_at, max(f.last_at) AS last_at,
                min(f.job_id) AS job_id, max(f.last_job_id) AS last_job_id,
                (array_agg(f.subject))[1] AS subject, max(f.waited) AS waited
            FROM jsonb_to_recordset(facts) AS f (
                key text, queue text, task text, count integer, first_at text, last_at text,
                job_id bigint, last_job_id bigint, subject text, waited double precision
            )
            WHERE f.queue LIKE rule.queues AND f.task LIKE rule.tasks
                AND (rule.threshold IS NULL OR f.waited >= extract(epoch FROM rule.threshold))
            GROUP BY f.key
            ORDER BY f.key
        LOOP
            added := added + 1;
            SELECT g.key, g.job_id, g.due_at INTO last
            FROM /*schema.*/notice_group AS g
            WHERE g.rule = rule.name AND g.key = fact.key;
            IF last.key IS NULL AND 100 <= (
                SELECT count(*) FROM /*schema.*/notice_group AS g
                WHERE g.rule = rule.name AND g.key <> '~' AND g.due_at > moment - rule.group_for
            ) THEN
                fact.key := '~';
                SELECT g.key, g.job_id, g.due_at INTO last
                FROM /*schema.*/notice_group AS g
                WHERE g.rule = rule.name AND g.key = fact.key;
            END IF;

            open_id := NULL;
            UPDATE /*schema.*/job AS j SET args = j.args || jsonb_strip_nulls(jsonb_build_object(
                'count', (j.args ->> 'count')::bigint + fact.count,
                'last_at', fact.last_at, 'last_job_id', fact.last_job_id,
                'subject', fact.subject, 'waited', fact.waited
            ))
            WHERE j.id = (
                -- A job that has ever been claimed has another token. One that an operator has locked is
                -- left alone.
                SELECT o.id FROM /*schema.*/job AS o
                WHERE o.id = last.job_id AND o.task = 'tenure.notice' AND o.state = 'queued' AND o.token = 0
                FOR UPDATE SKIP LOCKED
            )
            RETURNING j.id INTO open_id;
            CONTINUE WHEN open_id IS NOT NULL;

            due := greatest(moment, last.due_at + rule.group_for);
            is_due := is_due OR due = moment;
            INSERT INTO /*schema.*/job AS j (
                queue, task, args, priority, created_at, run_at, max_attempts, max_losses
            )
            VALUES (
                'tenure.notices', 'tenure.notice',
                jsonb_strip_nulls(jsonb_build_object(
                    'rule', rule.name, 'event', notice_add.event, 'group', fact.key,
                    'queue', fact.queue, 'task', fact.task, 'count', fact.count,
                    'first_at', fact.first_at, 'last_at', fact.last_at,
                    'job_id', fact.job_id, 'last_job_id', fact.last_job_id,
                    'subject', fact.subject, 'waited', fact.waited
                )),
                5, moment, due, 10, 3
            )
            RETURNING j.id INTO open_id;
            INSERT INTO /*schema.*/notice_group AS g (rule, key, job_id, due_at)
            VALUES (rule.name, fact.key, open_id, due)
            ON CONFLICT ON CONSTRAINT notice_group_pkey
                DO UPDATE SET job_id = excluded.job_id, due_at = excluded.due_at;
        END LOOP;
    END LOOP;
    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    IF is_due AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify(rtrim('/*schema.*/', '.') || '_wakeup', 'tenure.notices');
    END IF;
    RETURN added;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_add FROM PUBLIC;

-- Adds the dead letters of one statement to the notices of the event failed. The failure of a notice is
-- not an event.
CREATE OR REPLACE FUNCTION /*schema.*/notice_failed(
)
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM /*schema.*/notice_rule AS r WHERE r.event = 'failed') THEN
        PERFORM /*schema.*/notice_add('failed', jsonb_agg(to_jsonb(f)))
        FROM (
            SELECT
                md5(format('%s %s', d.task, d.error_signature)) AS key, d.queue, d.task,
                count(*) AS count,
                to_char(min(d.ended_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS first_at,
                to_char(max(d.ended_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_at,
                min(d.id) AS job_id, max(d.id) AS last_job_id
            FROM dead AS d
            WHERE d.queue <> 'tenure.notices' AND d.task <> 'tenure.notice'
            GROUP BY d.queue, d.task, d.error_signature
        ) AS f
        HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_failed FROM PUBLIC;

CREATE TRIGGER job_failed_notice AFTER INSERT ON /*schema.*/job_failed
    REFERENCING NEW TABLE AS dead
    FOR EACH STATEMENT EXECUTE FUNCTION /*schema.*/notice_failed();

-- Adds the missed ticks of one statement to the notices of the event schedule_missed.
CREATE OR REPLACE FUNCTION /*schema.*/notice_missed(
)
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM /*schema.*/notice_rule AS r WHERE r.event = 'schedule_missed') THEN
        PERFORM /*schema.*/notice_add('schedule_missed', jsonb_agg(to_jsonb(f)))
        FROM (
            SELECT
                t.schedule AS key, t.schedule AS subject, s.queue, s.task, count(*) AS count,
                to_char(min(t.fire_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS first_at,
                to_char(max(t.fire_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_at
            FROM tick AS t
            JOIN /*schema.*/schedule AS s ON s.name = t.schedule
            WHERE t.reason = 'missed'
            GROUP BY t.schedule, s.queue, s.task
        ) AS f
        HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_missed FROM PUBLIC;

CREATE TRIGGER schedule_tick_notice AFTER INSERT ON /*schema.*/schedule_tick
    REFERENCING NEW TABLE AS tick
    FOR EACH STATEMENT EXECUTE FUNCTION /*schema.*/notice_missed();
