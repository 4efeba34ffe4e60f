-- $1 queues, $2 priorities, $3 floor_ats, $4 floor_ids, $5 names, $6 count, $7 worker, $8 ttl, $9 now
-- Claim up to $6 due jobs by priority; in each what was given back first, then the lanes in
-- the order given, each above its floor; a suspect (a job with a loss) comes alone. Nothing is
-- taken if one of $5 ('*' among them) has a limit: claim_limited does that; gate.sql tells.
-- Uses job_returned_idx and job_lane_idx; locks the rows taken, skipping locked ones.
WITH rule AS MATERIALIZED (
    SELECT q.name, q.lease, q.max_running,
        q.paused_at IS NOT NULL
        AND coalesce(q.paused_until > coalesce($9::timestamptz, statement_timestamp()), true) AS paused
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($5::text[])
), gate AS MATERIALIZED (
    SELECT
        coalesce(bool_or(r.max_running IS NOT NULL), false) AS limited,
        coalesce(bool_or(r.paused AND r.name = '*'), false) AS paused,
        array_agg(r.name) FILTER (WHERE r.paused) AS paused_queues,
        count(r.lease) > 0 AS leases_differ,
        EXISTS (
            SELECT FROM /*schema.*/job AS q
            WHERE q.state = 'queued' AND q.returned AND NOT q.held
        ) AS returned
    FROM rule AS r
), lane AS (
    SELECT l.*, b.returned
    FROM gate
    CROSS JOIN (VALUES (true), (false)) AS b (returned)
    CROSS JOIN unnest($1::text[], $2::smallint[], $3::timestamptz[], $4::bigint[]) WITH ORDINALITY
        AS l (queue, priority, floor_at, floor_id, place)
    WHERE NOT gate.limited AND NOT gate.paused AND (gate.returned OR NOT b.returned)
        AND (gate.paused_queues IS NULL OR l.queue <> ALL (gate.paused_queues))
    ORDER BY l.priority DESC, b.returned DESC, l.place
), found AS MATERIALIZED (
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
)
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
        $8::interval,
        j.lease,
        CASE WHEN (SELECT gate.leases_differ FROM gate)
            THEN (SELECT r.lease FROM rule AS r WHERE r.name = j.queue)
        END,
        (SELECT make_interval(secs => (s.value #>> '{}')::double precision)
         FROM /*schema.*/setting AS s WHERE s.name = 'lease'),
        interval '30 seconds'
    ),
    renewals = 0,
    returned = false
FROM found AS f
WHERE j.id = f.id AND (
    f.id = (SELECT g.id FROM found AS g LIMIT 1)
    OR (f.losses = 0 AND (SELECT g.losses = 0 FROM found AS g LIMIT 1))
)
RETURNING
    j.id, j.token, j.queue, j.task, j.key, j.args, j.priority, j.attempt, j.max_attempts, j.losses,
    j.run_at, j.created_at, j.claimed_at, j.lease_expires_at, j.cursor, j.progress, j.items, j.meta,
    f.returned,
    (SELECT count(*) FROM found) AS found,
    (SELECT gate.paused_queues FROM gate) AS unread,
    false AS limited
