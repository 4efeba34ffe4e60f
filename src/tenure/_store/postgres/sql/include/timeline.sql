-- The server's timeline, or 1 on Aurora, which doesn't tell it. Aurora's storage loses no commit in
-- a failover, so there are no two histories to tell apart.
        (SELECT CASE
            WHEN to_regproc('pg_catalog.aurora_version') IS NULL
                THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
            ELSE 1
        END)
