-- Removes dashboard sessions, sign-in codes, parents of tokens and addresses in the audit log.
-- breaking: yes

DROP TABLE /*schema.*/sign_in_code, /*schema.*/dashboard_session;

ALTER TABLE /*schema.*/audit DROP COLUMN address;

DROP INDEX /*schema.*/api_token_parent_idx;

ALTER TABLE /*schema.*/api_token DROP COLUMN created_by_token;
