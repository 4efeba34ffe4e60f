-- Return whether this session's role may choose a job's id. A producer may not.
-- Reads the catalog; locks nothing.
SELECT has_column_privilege('/*schema.*/job', 'id', 'INSERT') AS may
