-- $1 names
-- Settings of the server as they hold for this session, and where each was set.
-- Reads settings only; locks nothing.
SELECT s.name, s.setting AS value, s.source
FROM pg_catalog.pg_settings AS s
WHERE s.name = ANY ($1::text[])
