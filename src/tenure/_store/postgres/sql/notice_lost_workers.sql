-- $1 silent_for, $2 now
-- Mark workers that have stopped sending heartbeats without saying goodbye, each once, and add them
-- to the notices of the event worker_lost. A heartbeat removes the mark.
-- Reads the whole table, which is small; locks the workers, skipping locked ones, then the rules.
WITH lost AS MATERIALIZED (
    SELECT w.id
    FROM /*schema.*/worker AS w
    WHERE w.state <> 'offline' AND NOT coalesce(w.meta ? 'reported_lost', false)
        AND w.last_heartbeat_at < coalesce($2::timestamptz, statement_timestamp()) - $1::interval
    FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE /*schema.*/worker AS w SET meta = coalesce(w.meta, '{}') || '{"reported_lost": true}'
    FROM lost AS l
    WHERE w.id = l.id
    RETURNING w.name, w.last_heartbeat_at
)
SELECT /*schema.*/notice_add('worker_lost', jsonb_agg(jsonb_build_object(
    'key', 'workers', 'queue', '', 'task', '', 'count', 1, 'subject', m.name,
    'first_at', to_char(m.last_heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'last_at', to_char(m.last_heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
))) AS added
FROM marked AS m
HAVING count(*) > 0
