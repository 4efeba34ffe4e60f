-- Read how full the server's notification queue is, and its oldest open transaction: a listening
-- one keeps the queue from being emptied. The server doesn't show which sessions listen.
-- Reads statistics; locks nothing.
SELECT pg_notification_queue_usage() AS usage, a.pid, a.application_name AS application, a.xact_start AS since
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT s.pid, s.application_name, s.xact_start
    FROM pg_catalog.pg_stat_activity AS s
    WHERE s.xact_start IS NOT NULL AND s.backend_type = 'client backend' AND s.pid <> pg_backend_pid()
    ORDER BY s.xact_start
    LIMIT 1
) AS a ON true
