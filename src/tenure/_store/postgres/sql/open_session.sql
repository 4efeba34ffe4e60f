-- $1 hash, $2 name, $3 provider, $4 token, $5 scopes, $6 queues, $7 lifetime, $8 idle, $9 address, $10 agent, $11 now
-- Insert a dashboard session by the hash of its id.
-- Inserts only: locks nothing.
INSERT INTO /*schema.*/dashboard_session AS s (
    hash, name, provider, token_id, scopes, queues, created_at, seen_at, expires_at, idle, address,
    user_agent
)
SELECT
    decode($1::text, 'hex'), $2::text, $3::text, $4::bigint, $5::text[], $6::text[], m.now, m.now,
    m.now + $7::interval, $8::interval, $9::text, $10::text
FROM (SELECT coalesce($11::timestamptz, clock_timestamp()) AS now) AS m
RETURNING s.id, 'active' AS state, s.name, s.provider, s.token_id, s.scopes, s.queues, s.created_at,
    s.seen_at, least(s.expires_at, s.seen_at + s.idle) AS ends_at, s.address, s.user_agent,
    s.ended_at, s.ended_by
