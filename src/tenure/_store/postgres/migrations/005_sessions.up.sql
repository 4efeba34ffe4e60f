-- Dashboard sessions, one-time sign-in codes, the parents of access tokens, client addresses in the
-- audit log.
-- breaking: no

ALTER TABLE /*schema.*/api_token ADD COLUMN created_by_token bigint;

CREATE INDEX api_token_parent_idx ON /*schema.*/api_token (created_by_token)
WHERE created_by_token IS NOT NULL;

ALTER TABLE /*schema.*/audit ADD COLUMN address text;

-- The sessions of the dashboard. Of a session's id in the cookie, only its SHA-256 is stored. A session
-- has the rights of its token, or its own if another system signed the user in.
CREATE TABLE /*schema.*/dashboard_session (
    id         bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    hash       bytea       NOT NULL,
    name       text        NOT NULL,
    provider   text        NOT NULL,
    token_id   bigint,
    scopes     text[],
    queues     text[],
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    idle       interval    NOT NULL,
    address    text,
    user_agent text,
    ended_at   timestamptz,
    ended_by   text,
    CONSTRAINT dashboard_session_pkey PRIMARY KEY (id),
    CONSTRAINT dashboard_session_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT dashboard_session_grant_check CHECK (
        token_id IS NOT NULL OR scopes IS NOT NULL AND queues IS NOT NULL
    ),
    CONSTRAINT dashboard_session_ended_check CHECK ((ended_at IS NULL) = (ended_by IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX dashboard_session_hash_idx ON /*schema.*/dashboard_session (hash);

CREATE INDEX dashboard_session_expires_idx ON /*schema.*/dashboard_session (expires_at);

-- Codes that sign a browser in once, by their SHA-256. Using one deletes its row.
CREATE TABLE /*schema.*/sign_in_code (
    hash       bytea       NOT NULL,
    token_id   bigint      NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT sign_in_code_pkey PRIMARY KEY (hash),
    CONSTRAINT sign_in_code_hash_check CHECK (octet_length(hash) = 32)
);

CREATE INDEX sign_in_code_expires_idx ON /*schema.*/sign_in_code (expires_at);
