-- $1 schema
-- The statements that empty the tables of a schema, and leave its version: for tests. A DELETE for
-- each: of few rows in many partitions it is far quicker than a TRUNCATE.
-- Uses pg_class_relname_nsp_index; locks nothing.
SELECT format('DELETE FROM %I.%I', $1::text, c.relname) AS statement
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident($1))
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> 'schema_version'
