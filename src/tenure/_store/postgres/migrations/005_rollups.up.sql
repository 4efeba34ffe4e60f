-- Counts per minute, and what bounded counts of queues and of dead letters are read by.
-- breaking: no

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
