-- $1 version
-- Record that a migration was reverted, in its transaction if it has one.
-- Uses schema_version_pkey.
DELETE FROM /*schema.*/schema_version AS v
WHERE v.version = $1::integer
