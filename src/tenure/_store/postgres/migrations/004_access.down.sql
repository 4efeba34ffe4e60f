-- Takes the tokens of the server away, and what requests with an idempotency key were answered.
-- breaking: yes

DROP TABLE /*schema.*/idempotency, /*schema.*/api_token;
