-- $1 most, $2 now
-- Count for the overview: expired leases, a day's and an hour's dead letters, and jobs completed
-- since midnight UTC (folded minutes, then attempts). Each up to $1.
-- Uses job_expiry_idx, job_failed_ended_idx, rollup_minute_pkey and attempt_ended_at_idx; locks
-- nothing.
WITH at AS MATERIALIZED (
    SELECT t.now, date_trunc('day', t.now, 'UTC') AS midnight,
        greatest((SELECT s.counted_until FROM /*schema.*/rollup_state AS s WHERE s.singleton),
            date_trunc('day', t.now, 'UTC')) AS counted_until
    FROM (SELECT coalesce($2::timestamptz, statement_timestamp()) AS now) AS t
), ended AS MATERIALIZED (
    SELECT e.outcome FROM at AS a CROSS JOIN LATERAL (
        SELECT t.outcome FROM /*schema.*/attempt AS t
        WHERE t.ended_at >= a.counted_until AND t.filed_on >= (a.midnight AT TIME ZONE 'UTC')::date - 1
        ORDER BY t.ended_at DESC
        LIMIT $1::integer
    ) AS e
)
SELECT a.now,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job AS j
            WHERE j.state = 'running' AND j.lease_expires_at < a.now LIMIT $1
        ) AS c
    ) AS expired,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job_failed AS f WHERE f.ended_at > a.now - interval '24 hours' LIMIT $1
        ) AS c
    ) AS failed_day,
    (
        SELECT count(*) FROM (
            SELECT FROM /*schema.*/job_failed AS f WHERE f.ended_at > a.now - interval '1 hour' LIMIT $1
        ) AS c
    ) AS failed_hour,
    (
        SELECT coalesce(sum(r.completed), 0)::bigint FROM /*schema.*/rollup_minute AS r
        WHERE r.queue = '' AND r.task = '' AND r.minute >= a.midnight AND r.minute < a.counted_until
    ) AS folded,
    (SELECT count(*) FROM ended AS e) AS ended,
    (SELECT count(*) FROM ended AS e WHERE e.outcome = 'completed') AS completed
FROM at AS a
