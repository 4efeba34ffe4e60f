-- $1 ahead, $2 archive_days, $3 attempt_days, $4 now
-- Plan partition maintenance as statements in order: create the days ahead, finish interrupted
-- detaches, detach and drop expired days. The newest day that has begun is always kept, so there is
-- always one to file under.
-- Reads the catalog; locks nothing.
WITH parent AS (
    SELECT c.oid, c.relname AS name, n.nspname AS schema, p.keep
    FROM (VALUES
        ('/*schema.*/job_archive'::regclass, $2::integer),
        ('/*schema.*/attempt'::regclass, $3::integer)
    ) AS p (oid, keep)
    JOIN pg_catalog.pg_class AS c ON c.oid = p.oid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
), today AS (
    SELECT (coalesce($4::timestamptz, statement_timestamp()) AT TIME ZONE 'UTC')::date AS day
), part AS (
    SELECT p.oid AS parent, c.relname AS name,
        CASE WHEN c.relname ~ '_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') END AS day,
        i.inhrelid IS NOT NULL AS attached, coalesce(i.inhdetachpending, false) AS pending
    FROM parent AS p
    JOIN pg_catalog.pg_class AS c
        ON c.relname ~ ('^' || p.name || '_[0-9]{8}$') AND c.relkind = 'r'
        AND c.relnamespace = (SELECT q.relnamespace FROM pg_catalog.pg_class AS q WHERE q.oid = p.oid)
    LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = p.oid
), wanted AS (
    SELECT p.oid AS parent, p.schema, p.name, d.day::date AS day,
        p.name || '_' || to_char(d.day, 'YYYYMMDD') AS part
    FROM parent AS p
    CROSS JOIN today AS t
    CROSS JOIN generate_series(t.day, t.day + $1::integer, interval '1 day') AS d (day)
), past AS (
    SELECT p.schema, p.name AS parent_name, x.*
    FROM parent AS p
    CROSS JOIN today AS t
    JOIN part AS x ON x.parent = p.oid
    WHERE x.day < t.day - p.keep
        AND x.day < (
            SELECT max(y.day) FROM part AS y
            WHERE y.parent = p.oid AND y.attached AND NOT y.pending AND y.day <= t.day
        )
)
SELECT s.step, s.day, s.parent, s.statement
FROM (
    SELECT 1 AS step, w.day, w.name AS parent,
        format('CREATE TABLE %I.%I (LIKE %I.%I INCLUDING ALL)', w.schema, w.part, w.schema, w.name) AS statement
    FROM wanted AS w
    WHERE NOT EXISTS (SELECT FROM part AS x WHERE x.parent = w.parent AND x.day = w.day)
    UNION ALL
    SELECT 2, w.day, w.name,
        format('ALTER TABLE %I.%I ATTACH PARTITION %I.%I FOR VALUES FROM (%L) TO (%L)',
            w.schema, w.name, w.schema, w.part, w.day, w.day + 1)
    FROM wanted AS w
    WHERE NOT EXISTS (SELECT FROM part AS x WHERE x.parent = w.parent AND x.day = w.day AND x.attached)
    UNION ALL
    SELECT 3, p.day, p.parent_name,
        format('ALTER TABLE %I.%I DETACH PARTITION %I.%I FINALIZE', p.schema, p.parent_name, p.schema, p.name)
    FROM past AS p
    WHERE p.pending
    UNION ALL
    SELECT 4, p.day, p.parent_name,
        format('ALTER TABLE %I.%I DETACH PARTITION %I.%I CONCURRENTLY', p.schema, p.parent_name, p.schema, p.name)
    FROM past AS p
    WHERE p.attached AND NOT p.pending
    UNION ALL
    SELECT 5, p.day, p.parent_name, format('DROP TABLE %I.%I', p.schema, p.name)
    FROM past AS p
) AS s
ORDER BY s.step, s.day, s.parent
