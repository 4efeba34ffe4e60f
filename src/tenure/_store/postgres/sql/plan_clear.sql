-- $1 schema
-- Build the statements that empty a schema's tables except its version, for tests. Deleting a few
-- rows in many partitions is far faster than a TRUNCATE.
-- Uses pg_class_relname_nsp_index; locks nothing.
SELECT format('DELETE FROM %I.%I', $1::text, c.relname) AS statement
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(quote_ident($1))
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> 'schema_version'
