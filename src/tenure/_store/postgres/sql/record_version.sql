-- $1 version, $2 name, $3 breaking, $4 now
-- Record that a migration was applied, in its transaction if it has one.
-- Uses schema_version_pkey.
INSERT INTO /*schema.*/schema_version (version, name, breaking, applied_at)
VALUES ($1::integer, $2::text, $3::boolean, coalesce($4::timestamptz, clock_timestamp()))
