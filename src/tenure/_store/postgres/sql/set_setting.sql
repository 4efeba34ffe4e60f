-- $1 name, $2 value, $3 changed_by, $4 now
-- Set an installation setting.
-- Uses setting_pkey; the row is locked by the caller.
UPDATE /*schema.*/setting AS s SET
    value = $2::jsonb,
    changed_at = coalesce($4::timestamptz, clock_timestamp()),
    changed_by = $3::text
WHERE s.name = $1::text
