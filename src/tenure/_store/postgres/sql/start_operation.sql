-- $1 kind, $2 filter, $3 changes, $4 rate, $5 actor, $6 source, $7 reason, $8 now
-- Insert an operation without members. Its transaction then freezes them and lets it begin.
-- Inserts only: locks nothing.
INSERT INTO /*schema.*/operation (
    kind, state, filter, changes, rate, actor, source, reason, created_at, next_at
)
SELECT
    $1::text, 'pending', $2::jsonb, $3::jsonb, $4::integer, $5::text, $6::text, $7::text, m.now, m.now
FROM (SELECT coalesce($8::timestamptz, clock_timestamp()) AS now) AS m
RETURNING id
