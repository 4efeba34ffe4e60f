-- $1 name, $2 value, $3 changed_by, $4 now
-- Give a setting a value for the whole installation; answers with the one before.
-- Uses setting_pkey; locks that row, waiting.
WITH before AS MATERIALIZED (
    SELECT s.value FROM /*schema.*/setting AS s WHERE s.name = $1::text FOR UPDATE
), written AS (
    INSERT INTO /*schema.*/setting AS s (name, value, changed_at, changed_by)
    VALUES ($1, $2::jsonb, coalesce($4::timestamptz, clock_timestamp()), $3::text)
    ON CONFLICT (name) DO UPDATE SET
        value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by
)
SELECT (SELECT b.value FROM before AS b) AS before
