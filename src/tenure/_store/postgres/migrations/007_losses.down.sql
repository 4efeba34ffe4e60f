-- Forgets worker losses, deaths and suspicion, and the attempts that dead letters have kept.
-- breaking: yes

ALTER TABLE /*schema.*/job_failed
    DROP COLUMN worker_losses,
    DROP COLUMN deaths,
    DROP COLUMN history;

ALTER TABLE /*schema.*/job
    DROP COLUMN worker_losses,
    DROP COLUMN deaths,
    DROP COLUMN suspect;
