-- Read which standbys a commit waits for, and how many are connected.
-- Reads settings and statistics; locks nothing.
SELECT current_setting('synchronous_standby_names') AS names,
    (SELECT count(*) FROM pg_catalog.pg_stat_replication) AS connected
