-- $1 queues, $2 priorities, $3 returned, $4 floor_ats, $5 floor_ids, $6 names, $7 count, $8 worker, $9 ttl, $10 now, $11 strangers, $12 worker_losses, $13 deaths
-- Claim up to $7 due jobs from lanes in order, each above its floor. A suspect is claimed alone,
-- and only with fewer worker losses than $12 and fewer deaths than $13. renewals is -1 until the
-- handler begins. A limit on any of $6 leaves the claim to claim_limited. Tasks in $11 are left to
-- other workers. If there's no row, claim_blockers.sql finds out why.
-- Uses job_lane_idx; locks the rows taken, skipping locked ones.
WITH rule AS MATERIALIZED (
    SELECT q.name, q.lease, q.max_running,
        q.paused_at IS NOT NULL
        AND coalesce(q.paused_until > coalesce($10::timestamptz, statement_timestamp()), true) AS paused
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($6::text[])
), gate AS MATERIALIZED (
    SELECT
        coalesce(bool_or(r.max_running IS NOT NULL OR (r.paused AND r.name = '*')), false) AS shut,
        array_agg(r.name) FILTER (WHERE r.paused) AS paused_queues,
        count(r.lease) > 0 AS leases_differ
    FROM rule AS r
), found AS MATERIALIZED (
    SELECT j.id, j.suspect, l.returned
    FROM gate
    CROSS JOIN unnest($1::text[], $2::smallint[], $3::boolean[], $4::timestamptz[], $5::bigint[])
        AS l (queue, priority, returned, floor_at, floor_id)
    CROSS JOIN LATERAL (
        SELECT q.id, q.suspect
        FROM /*schema.*/job AS q
        WHERE NOT q.held AND q.state = 'queued'
            AND q.queue = l.queue AND q.priority = l.priority AND q.returned = l.returned
            AND (q.run_at, q.id) > (l.floor_at, l.floor_id)
            AND q.run_at <= coalesce($10, statement_timestamp())
            AND q.task <> ALL ($11::text[])
            AND (NOT q.suspect OR (q.worker_losses < $12::smallint AND q.deaths < $13::smallint))
        ORDER BY q.run_at, q.id
        LIMIT $7::integer
        FOR UPDATE SKIP LOCKED
    ) AS j
    WHERE NOT gate.shut AND (gate.paused_queues IS NULL OR l.queue <> ALL (gate.paused_queues))
    LIMIT $7
)
UPDATE /*schema.*/job AS j SET
    state = 'running',
    token = greatest(
        j.token + 1,
        /*include timeline*/
        << 40
    ),
    attempt = j.attempt + 1,
    claimed_by = $8::uuid,
    claimed_at = coalesce($10, clock_timestamp()),
    renewed_at = coalesce($10, clock_timestamp()),
    lease_expires_at = coalesce($10, clock_timestamp()) + coalesce(
        $9::interval,
        j.lease,
        CASE WHEN (SELECT gate.leases_differ FROM gate)
            THEN (SELECT r.lease FROM rule AS r WHERE r.name = j.queue)
        END,
        (SELECT make_interval(secs => (s.value #>> '{}')::double precision)
         FROM /*schema.*/setting AS s WHERE s.name = 'lease'),
        interval '30 seconds'
    ),
    renewals = -1,
    returned = false
FROM found AS f
WHERE j.id = ANY (ARRAY[f.id]) AND (
    f.id = (SELECT g.id FROM found AS g LIMIT 1)
    OR (NOT f.suspect AND (SELECT NOT g.suspect FROM found AS g LIMIT 1))
)
RETURNING
    j.id, j.token, j.queue, j.task, j.key, j.args, j.priority, j.attempt, j.max_attempts, j.losses,
    j.run_at, j.created_at, j.claimed_at, j.lease_expires_at, j.cursor, j.progress, j.items, j.meta,
    CASE WHEN j.deaths > 0 OR j.max_losses = 0 OR j.suspect
        THEN ARRAY[j.worker_losses, j.deaths, j.suspect::integer, j.max_losses]
    END AS lost,
    f.returned,
    coalesce($10, statement_timestamp()) AS now,
    (SELECT count(*) FROM found) AS found,
    (SELECT gate.paused_queues FROM gate) AS unread
