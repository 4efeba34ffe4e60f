-- Operations: actions on many jobs, whose members are frozen at the start and done in chunks.
-- breaking: no

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
    CONSTRAINT operation_kind_check CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move')),
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
    operation_id bigint  NOT NULL,
    job_id       bigint  NOT NULL,
    place        integer NOT NULL,
    outcome      text,
    CONSTRAINT operation_item_pkey PRIMARY KEY (operation_id, place)
) WITH (fillfactor = 50);

CREATE INDEX operation_item_job_idx ON /*schema.*/operation_item (job_id, operation_id);
