-- List the settings changed at run time. Others have their defaults.
-- Uses setting_pkey; locks nothing.
SELECT s.name, s.value, s.changed_at, s.changed_by
FROM /*schema.*/setting AS s
ORDER BY s.name
