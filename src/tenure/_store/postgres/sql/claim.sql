-- $1 queues, $2 priorities, $3 returned, $4 floor_ats, $5 floor_ids, $6 count, $7 worker, $8 ttl, $9 now
-- Claim up to $6 due jobs from an ordered list of lanes, each above its floor; a suspect (a
-- job with a loss) comes alone. Nothing is taken if a queue asked for has a limit: see
-- claim_limited. Answers with at least one row: the time, and how many were found.
-- Uses job_returned_idx and job_lane_idx; locks the rows taken, skipping locked ones.
WITH rule AS MATERIALIZED (
    SELECT q.name, q.lease, q.max_running,
        q.paused_at IS NOT NULL
        AND coalesce(q.paused_until > coalesce($9::timestamptz, statement_timestamp()), true) AS paused
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($1::text[]) OR q.name = '*'
), gate AS MATERIALIZED (
    SELECT
        coalesce(bool_or(r.max_running IS NOT NULL), false) AS limited,
        coalesce(bool_or(r.paused AND r.name = '*'), false) AS paused,
        array_agg(r.name) FILTER (WHERE r.paused) AS paused_queues,
        EXISTS (
            SELECT FROM /*schema.*/job AS q
            WHERE q.state = 'queued' AND q.returned AND NOT q.held
        ) AS returned
    FROM rule AS r
), lane AS (
    SELECT l.*
    FROM unnest($1, $2::smallint[], $3::boolean[], $4::timestamptz[], $5::bigint[])
        AS l (queue, priority, returned, floor_at, floor_id)
    CROSS JOIN gate
    WHERE NOT gate.limited AND NOT gate.paused AND (gate.returned OR NOT l.returned)
        AND (gate.paused_queues IS NULL OR l.queue <> ALL (gate.paused_queues))
), found AS MATERIALIZED (
    SELECT t.id, t.losses, t.returned, row_number() OVER () AS place
    FROM (
        SELECT j.id, j.losses, l.returned
        FROM lane AS l
        CROSS JOIN LATERAL (
            SELECT r.id, r.losses
            FROM (
                SELECT q.id, q.losses
                FROM /*schema.*/job AS q
                WHERE l.returned
                    AND q.state = 'queued' AND q.returned AND NOT q.held
                    AND q.queue = l.queue AND q.priority = l.priority
                    AND q.run_at <= coalesce($9, statement_timestamp())
                ORDER BY q.run_at, q.id
                LIMIT $6::integer
                FOR UPDATE SKIP LOCKED
            ) AS r
            UNION ALL
            SELECT f.id, f.losses
            FROM (
                SELECT q.id, q.losses
                FROM /*schema.*/job AS q
                WHERE NOT l.returned
                    AND q.state = 'queued' AND NOT q.returned AND NOT q.held
                    AND q.queue = l.queue AND q.priority = l.priority
                    AND (q.run_at, q.id) > (l.floor_at, l.floor_id)
                    AND q.run_at <= coalesce($9, statement_timestamp())
                ORDER BY q.run_at, q.id
                LIMIT $6
                FOR UPDATE SKIP LOCKED
            ) AS f
        ) AS j
        LIMIT $6
    ) AS t
), claimed AS (
    UPDATE /*schema.*/job AS j SET
        state = 'running',
        token = greatest(
            j.token + 1,
            (SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint << 40)
        ),
        attempt = j.attempt + 1,
        claimed_by = $7::uuid,
        claimed_at = coalesce($9, clock_timestamp()),
        renewed_at = coalesce($9, clock_timestamp()),
        lease_expires_at = coalesce($9, clock_timestamp()) + coalesce(
            $8::interval, j.lease, (SELECT r.lease FROM rule AS r WHERE r.name = j.queue),
            (SELECT make_interval(secs => (s.value #>> '{}')::double precision)
             FROM /*schema.*/setting AS s WHERE s.name = 'lease'),
            interval '30 seconds'
        ),
        renewals = 0,
        returned = false
    FROM found AS f
    WHERE j.id = f.id
        AND (f.place = 1 OR (f.losses = 0 AND (SELECT g.losses = 0 FROM found AS g WHERE g.place = 1)))
    RETURNING j.*, f.returned AS was_returned
)
SELECT
    coalesce($9, statement_timestamp()) AS now,
    gate.limited,
    CASE WHEN gate.paused OR gate.limited THEN $1 ELSE gate.paused_queues END AS unread,
    (SELECT count(*) FROM found) AS found,
    c.*
FROM gate
LEFT JOIN claimed AS c ON true
