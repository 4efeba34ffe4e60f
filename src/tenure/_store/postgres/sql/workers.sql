-- $1 now
-- All known workers, with the age of their last beat on the database's clock.
-- Uses worker_pkey; locks nothing.
SELECT w.id, w.name, w.host, w.pid, w.version, w.language, w.state, w.drain_requested, w.queues,
    w.slots, w.running, w.started_at, w.beat_at, w.meta,
    coalesce($1::timestamptz, statement_timestamp()) - w.beat_at AS beat_age
FROM /*schema.*/worker AS w
ORDER BY w.id
