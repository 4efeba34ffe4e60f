-- $1 name, $2 changed_by, $3 now
-- Insert a setting's row if missing, and lock it; returns its value, null if it was new.
-- Uses setting_pkey; locks that row, waiting.
INSERT INTO /*schema.*/setting AS s (name, value, changed_at, changed_by)
VALUES ($1::text, 'null', coalesce($3::timestamptz, clock_timestamp()), $2::text)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING s.value AS before
