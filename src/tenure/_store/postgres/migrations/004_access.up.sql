-- Access: the tokens of the server, and the answers to requests with an idempotency key.
-- breaking: no

-- What programs outside may do over the server. Of a secret only its SHA-256 is here, and how it
-- begins. What is allowed: each scope, in each queue that a pattern matches.
CREATE TABLE /*schema.*/api_token (
    id           bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    name         text        NOT NULL,
    hint         text        NOT NULL,
    hash         bytea       NOT NULL,
    scopes       text[]      NOT NULL,
    queues       text[]      NOT NULL,
    created_at   timestamptz NOT NULL,
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    CONSTRAINT api_token_pkey PRIMARY KEY (id),
    CONSTRAINT api_token_hash_check CHECK (octet_length(hash) = 32),
    CONSTRAINT api_token_revoked_check CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX api_token_hash_idx ON /*schema.*/api_token (hash);

-- The first answer to each request with an idempotency key, in the transaction of what it did;
-- answer is NULL inside of that alone.
CREATE TABLE /*schema.*/idempotency (
    actor      text        NOT NULL,
    key        text        NOT NULL,
    digest     text        NOT NULL,
    answer     jsonb,
    created_at timestamptz NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (actor, key)
);

CREATE INDEX idempotency_created_idx ON /*schema.*/idempotency (created_at);
