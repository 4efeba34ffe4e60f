-- The schema's version, and the newest version whose change was breaking.
-- Reads a table of a few rows; locks nothing.
SELECT coalesce(max(v.version), 0) AS version, max(v.version) FILTER (WHERE v.breaking) AS breaking
FROM /*schema.*/schema_version AS v
