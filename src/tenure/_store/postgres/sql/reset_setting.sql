-- $1 name
-- Take a setting back to its built-in value; answers with the one before. No row: it was there.
-- Uses setting_pkey; locks that row, waiting.
DELETE FROM /*schema.*/setting AS s
WHERE s.name = $1::text
RETURNING s.value AS before
