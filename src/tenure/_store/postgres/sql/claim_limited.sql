-- $1 queues, $2 priorities, $3 returned, $4 floor_ats, $5 floor_ids, $6 names, $7 count, $8 worker, $9 ttl, $10 locked, $11 now, $12 strangers, $13 worker_losses, $14 deaths
-- Claim like claim.sql, but within the limits: last in a transaction that has locked the limited
-- queues' rows and rescued their expired leases. Counts everything still running, including an
-- expired lease that was locked: a renewal may be reviving it.
-- Uses job_limited_idx and job_lane_idx; locks what it finds, skipping locked rows.
WITH rule AS MATERIALIZED (
    SELECT q.name, q.lease, q.max_running,
        q.paused_at IS NOT NULL
        AND coalesce(q.paused_until > coalesce($11::timestamptz, statement_timestamp()), true) AS paused,
        CASE
            WHEN q.max_running IS NULL THEN NULL
            -- Set since the rows were locked: this claim has no lock on it, so it leaves no room.
            WHEN q.name <> ALL ($10::text[]) THEN 0
            ELSE q.max_running - (
                SELECT count(*)
                FROM /*schema.*/job AS j
                WHERE j.state = 'running' AND j.limited AND (q.name = '*' OR j.queue = q.name)
            )
        END AS room
    FROM /*schema.*/queue AS q
    WHERE q.name = ANY ($6::text[])
), gate AS MATERIALIZED (
    SELECT
        least($7::integer, min(r.room) FILTER (WHERE r.name = '*')) AS room,
        coalesce(bool_or(r.max_running IS NOT NULL AND r.name = '*'), false) AS limited,
        coalesce(bool_or(r.paused AND r.name = '*'), false) AS paused
    FROM rule AS r
), lane AS (
    SELECT l.*, least(gate.room, r.room) AS room,
        gate.limited OR r.max_running IS NOT NULL AS limited
    FROM gate
    CROSS JOIN unnest($1::text[], $2::smallint[], $3::boolean[], $4::timestamptz[], $5::bigint[])
        WITH ORDINALITY AS l (queue, priority, returned, floor_at, floor_id, place)
    LEFT JOIN rule AS r ON r.name = l.queue
    WHERE NOT gate.paused AND NOT coalesce(r.paused, false)
), probed AS MATERIALIZED (
    SELECT j.id, j.suspect, l.returned, l.limited, l.room, l.place,
        row_number() OVER (PARTITION BY l.queue ORDER BY l.place, j.run_at, j.id) AS nth, j.run_at
    FROM lane AS l
    CROSS JOIN LATERAL (
        SELECT q.id, q.suspect, q.run_at
        FROM /*schema.*/job AS q
        WHERE l.room > 0
            AND NOT q.held AND q.state = 'queued'
            AND q.queue = l.queue AND q.priority = l.priority AND q.returned = l.returned
            AND (q.run_at, q.id) > (l.floor_at, l.floor_id)
            AND q.run_at <= coalesce($11, statement_timestamp())
            AND q.task <> ALL ($12::text[])
            AND (NOT q.suspect OR (q.worker_losses < $13::smallint AND q.deaths < $14::smallint))
        ORDER BY q.run_at, q.id
        LIMIT greatest(l.room, 0)
        FOR UPDATE SKIP LOCKED
    ) AS j
), found AS MATERIALIZED (
    SELECT p.id, p.suspect, p.returned, p.limited
    FROM probed AS p
    WHERE p.nth <= p.room
    ORDER BY p.place, p.run_at, p.id
    LIMIT (SELECT greatest(gate.room, 0) FROM gate)
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
    claimed_at = coalesce($11, clock_timestamp()),
    renewed_at = coalesce($11, clock_timestamp()),
    lease_expires_at = coalesce($11, clock_timestamp()) + coalesce(
        $9::interval,
        j.lease,
        (SELECT r.lease FROM rule AS r WHERE r.name = j.queue),
        (SELECT make_interval(secs => (s.value #>> '{}')::double precision)
         FROM /*schema.*/setting AS s WHERE s.name = 'lease'),
        interval '30 seconds'
    ),
    renewals = -1,
    returned = false,
    limited = f.limited
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
    coalesce($11, statement_timestamp()) AS now,
    (SELECT count(*) FROM found) AS found,
    (
        SELECT array_agg(r.name) FROM rule AS r
        WHERE r.paused OR r.max_running IS NOT NULL
    ) AS unread
