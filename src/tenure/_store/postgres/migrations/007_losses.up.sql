-- Three counters for three kinds of end: attempts for what the handler did, losses for deaths of the
-- job's own process, worker losses for the rest; deaths is their sum per life. A suspect runs alone. A
-- dead letter keeps its attempts for as long as it is kept itself.
-- breaking: no

ALTER TABLE /*schema.*/job
    ADD COLUMN worker_losses smallint NOT NULL DEFAULT 0,
    ADD COLUMN deaths smallint NOT NULL DEFAULT 0,
    ADD COLUMN suspect boolean NOT NULL DEFAULT false;

UPDATE /*schema.*/job SET deaths = losses, suspect = true WHERE losses > 0;

CREATE INDEX job_suspect_idx ON /*schema.*/job (queue) WHERE suspect AND NOT held AND state = 'queued';

ALTER TABLE /*schema.*/job_failed
    ADD COLUMN worker_losses smallint NOT NULL DEFAULT 0,
    ADD COLUMN deaths smallint NOT NULL DEFAULT 0,
    ADD COLUMN history jsonb;
