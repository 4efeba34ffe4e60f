-- $1 schema
-- Read the schema's functions: their parameters, options and bodies.
-- Reads the catalog; locks nothing.
SELECT
    p.proname::text AS name,
    pg_get_function_arguments(p.oid) AS parameters,
    concat_ws(
        ' ',
        'RETURNS ' || pg_get_function_result(p.oid),
        'LANGUAGE ' || l.lanname,
        CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' END,
        CASE WHEN p.proisstrict THEN 'STRICT' END,
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END,
        (
            SELECT string_agg('SET ' || regexp_replace(o.setting, '=', ' = '), ' ' ORDER BY o.place)
            FROM unnest(p.proconfig) WITH ORDINALITY AS o (setting, place)
        )
    ) AS options,
    p.prosrc AS body
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
WHERE n.nspname = $1::text
ORDER BY 1, 2
