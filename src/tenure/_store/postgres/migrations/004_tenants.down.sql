-- Drops the tasks and quotas of access tokens, and the quotas of queues.
-- breaking: yes

ALTER TABLE /*schema.*/worker DROP COLUMN listed;
ALTER TABLE /*schema.*/queue DROP COLUMN quotas;
ALTER TABLE /*schema.*/api_token DROP COLUMN page_key, DROP COLUMN quotas, DROP COLUMN tasks;
