-- $1 now
-- List all known workers, with the age of their last heartbeat by the database's clock.
-- Uses worker_pkey; locks nothing.
SELECT w.id, w.name, w.host, w.pid, w.version, w.language, w.state, w.drain_requested, w.queues,
    w.slots, w.running, w.started_at, w.last_heartbeat_at, w.meta,
    coalesce($1::timestamptz, statement_timestamp()) - w.last_heartbeat_at AS heartbeat_age
FROM /*schema.*/worker AS w
ORDER BY w.id
