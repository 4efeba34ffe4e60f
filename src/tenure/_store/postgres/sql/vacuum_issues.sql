-- List our tables and partitions that have autovacuum turned off.
-- Reads the catalog; locks nothing.
SELECT c.relname::text AS name
FROM pg_catalog.pg_class AS c
CROSS JOIN LATERAL pg_catalog.pg_options_to_table(c.reloptions) AS o
WHERE c.relkind = 'r' AND o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean
    AND c.relnamespace = (
        SELECT j.relnamespace FROM pg_catalog.pg_class AS j WHERE j.oid = '/*schema.*/job'::regclass
    )
ORDER BY 1
