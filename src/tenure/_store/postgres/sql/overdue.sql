-- $1 older_than, $2 count, $3 now
-- List leases that expired longer ago than this and weren't rescued, with what locks their rows, if
-- known (a single locker that still exists).
-- Uses job_expiry_idx; locks nothing.
SELECT j.id, a.pid, a.application_name, a.xact_start AS since
FROM (
    SELECT e.id, e.xmax
    FROM /*schema.*/job AS e
    WHERE e.state = 'running'
        AND e.lease_expires_at <= coalesce($3::timestamptz, statement_timestamp()) - $1::interval
    ORDER BY e.lease_expires_at
    LIMIT $2::integer
) AS j
LEFT JOIN pg_catalog.pg_locks AS l
    ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = j.xmax AND j.xmax <> '0'
LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
