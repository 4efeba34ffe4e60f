-- Schedules: their definitions, and every tick with what it came to.
-- breaking: no

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
