-- $1 names
-- Read the server's settings in this session, and where each was set.
-- Reads settings only; locks nothing.
SELECT s.name, s.setting AS value, s.source
FROM pg_catalog.pg_settings AS s
WHERE s.name = ANY ($1::text[])
