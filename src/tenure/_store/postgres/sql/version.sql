-- Read the schema's version, the newest breaking version, and the name of the first migration.
-- Reads a table of a few rows; locks nothing.
SELECT coalesce(max(v.version), 0) AS version, max(v.version) FILTER (WHERE v.breaking) AS breaking,
    max(v.name) FILTER (WHERE v.version = 1) AS first
FROM /*schema.*/schema_version AS v
