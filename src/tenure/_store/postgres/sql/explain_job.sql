-- $1 id, $2 most, $3 now
-- Read a live job's surroundings: due jobs ahead of it, running jobs under a limit in its queue and
-- overall, each counted up to $2, and what locks its row, if known (a single locker that still
-- exists). No row: it isn't live.
-- Uses job_pkey, job_lane_idx and job_limited_idx; locks nothing.
WITH asked AS MATERIALIZED (
    SELECT j.id, j.queue, j.priority, j.returned, j.run_at, j.xmax AS locked, j.renewed_at,
        greatest(j.renewals, 0) AS renewals,
        coalesce($3::timestamptz, statement_timestamp()) AS now
    FROM /*schema.*/job AS j
    WHERE j.id = $1::bigint
), lane AS MATERIALIZED (
    SELECT a.queue, p.priority::smallint, r.returned,
        CASE WHEN p.priority = a.priority AND r.returned = a.returned THEN a.run_at ELSE a.now END AS until_at,
        CASE WHEN p.priority = a.priority AND r.returned = a.returned THEN a.id ELSE 9223372036854775807 END AS until_id
    FROM asked AS a
    CROSS JOIN generate_series(a.priority, 9) AS p (priority)
    CROSS JOIN (VALUES (true), (false)) AS r (returned)
    WHERE p.priority > a.priority OR r.returned >= a.returned
)
SELECT a.now, a.renewed_at, a.renewals, l.pid, s.application_name AS application, s.xact_start AS since,
    (
        SELECT count(*) FROM (
            SELECT FROM lane AS l CROSS JOIN LATERAL (
                SELECT FROM /*schema.*/job AS j
                WHERE NOT j.held AND j.state = 'queued'
                    AND j.queue = l.queue AND j.priority = l.priority AND j.returned = l.returned
                    AND (j.run_at, j.id) < (l.until_at, l.until_id)
                LIMIT $2::integer
            ) AS j
            LIMIT $2
        ) AS c
    ) AS ahead,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job AS j
            WHERE j.limited AND j.state = 'running' AND j.queue = a.queue LIMIT $2
        ) AS c
    ) AS running,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job AS j WHERE j.limited AND j.state = 'running' LIMIT $2
        ) AS c
    ) AS running_in_all
FROM asked AS a
LEFT JOIN pg_catalog.pg_locks AS l
    ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = a.locked AND a.locked <> '0'
LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid = l.pid
