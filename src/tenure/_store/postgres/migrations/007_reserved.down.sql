-- Holds the number until the migration that owns it is merged.
-- breaking: no

SELECT FROM /*schema.*/schema_version;
