-- $1 name
-- Reset a setting to its default; returns the old value. No row: it had the default.
-- Uses setting_pkey; locks that row, waiting.
DELETE FROM /*schema.*/setting AS s
WHERE s.name = $1::text
RETURNING s.value AS before
