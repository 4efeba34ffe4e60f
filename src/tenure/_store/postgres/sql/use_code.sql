-- $1 hash, $2 now
-- Delete a one-time sign-in code and return its token's hash. No row: unknown, used or too late.
-- Uses sign_in_code_pkey and api_token_pkey; locks the code, so that it works only once.
DELETE FROM /*schema.*/sign_in_code AS c
USING /*schema.*/api_token AS t
WHERE c.hash = decode($1::text, 'hex')
    AND c.expires_at > coalesce($2::timestamptz, statement_timestamp())
    AND t.id = ANY (ARRAY[c.token_id])
RETURNING encode(t.hash, 'hex') AS token_digest
