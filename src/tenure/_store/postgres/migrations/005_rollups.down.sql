-- Takes the counts per minute away, with the indexes that they and the depths are read by.
-- breaking: yes

DROP INDEX /*schema.*/job_failed_group_idx;
DROP INDEX /*schema.*/job_failed_queue_idx;
DROP INDEX /*schema.*/job_held_idx;
DROP INDEX /*schema.*/attempt_ended_at_idx;
DROP TABLE /*schema.*/rollup_state, /*schema.*/rollup_minute;
