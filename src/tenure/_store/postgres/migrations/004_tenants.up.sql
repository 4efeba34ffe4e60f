-- Limits per tenant: tasks and quotas of access tokens, quotas of queues, and which of a worker's
-- queues are known without a job in them.
-- breaking: no

ALTER TABLE /*schema.*/api_token
    ADD COLUMN tasks text[] NOT NULL DEFAULT '{*}',
    ADD COLUMN quotas jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN page_key uuid NOT NULL DEFAULT gen_random_uuid();
ALTER TABLE /*schema.*/queue ADD COLUMN quotas jsonb NOT NULL DEFAULT '{}';
-- NULL stands for all of them.
ALTER TABLE /*schema.*/worker ADD COLUMN listed text[];
