-- Takes notices back out, with their rules. Notices that are queued stay queued.
-- breaking: yes

DROP TRIGGER schedule_tick_notice ON /*schema.*/schedule_tick;
DROP TRIGGER job_failed_notice ON /*schema.*/job_failed;
DROP FUNCTION /*schema.*/notice_missed;
DROP FUNCTION /*schema.*/notice_failed;
DROP FUNCTION /*schema.*/notice_add;
DROP TABLE /*schema.*/notice_group;
DROP TABLE /*schema.*/notice_rule;
