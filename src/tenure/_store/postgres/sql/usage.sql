-- $1 names, $2 prefixes, $3 most
-- Estimate the live jobs of some queues, each kind up to $3, and the bytes of an average payload.
-- Running jobs are counted among the 10,000 whose leases expire first, bytes in a sample of 1,000.
-- Uses job_lane_idx and job_held_idx (loose scans for prefixes), and job_expiry_idx; locks nothing.
WITH RECURSIVE queued (name) AS (
    (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE NOT j.held AND j.state = 'queued' AND cardinality($2::text[]) > 0
        ORDER BY j.queue LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE NOT j.held AND j.state = 'queued' AND j.queue > k.name ORDER BY j.queue LIMIT 1
    )
    FROM queued AS k
    WHERE k.name IS NOT NULL
), held (name) AS (
    (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE j.held AND j.state = 'queued' AND cardinality($2) > 0
        ORDER BY j.queue LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.queue FROM /*schema.*/job AS j
        WHERE j.held AND j.state = 'queued' AND j.queue > k.name ORDER BY j.queue LIMIT 1
    )
    FROM held AS k
    WHERE k.name IS NOT NULL
), name AS MATERIALIZED (
    SELECT n.name FROM unnest($1::text[]) AS n (name)
    UNION
    SELECT k.name
    FROM (SELECT q.name FROM queued AS q UNION SELECT h.name FROM held AS h) AS k
    WHERE EXISTS (SELECT FROM unnest($2) AS p (start) WHERE starts_with(k.name, p.start))
)
SELECT
    (
        SELECT count(*) FROM (
            SELECT FROM name AS n CROSS JOIN LATERAL (
                SELECT FROM /*schema.*/job AS j
                WHERE NOT j.held AND j.state = 'queued' AND j.queue = n.name
                LIMIT $3::integer
            ) AS j
            LIMIT $3
        ) AS c
    ) AS queued,
    (
        SELECT count(*) FROM (
            SELECT FROM name AS n CROSS JOIN LATERAL (
                SELECT FROM /*schema.*/job AS j
                WHERE j.held AND j.state = 'queued' AND j.queue = n.name
                LIMIT $3
            ) AS j
            LIMIT $3
        ) AS c
    ) AS held,
    (
        SELECT count(*)
        FROM (
            SELECT j.queue FROM /*schema.*/job AS j
            WHERE j.state = 'running' ORDER BY j.lease_expires_at LIMIT 10000
        ) AS r
        WHERE r.queue = ANY ($1)
            OR EXISTS (SELECT FROM unnest($2) AS p (start) WHERE starts_with(r.queue, p.start))
    ) AS running,
    (
        SELECT avg(c.size)
        FROM (
            SELECT j.size FROM name AS n CROSS JOIN LATERAL (
                SELECT pg_column_size(j.args) AS size FROM /*schema.*/job AS j
                WHERE NOT j.held AND j.state = 'queued' AND j.queue = n.name
                LIMIT 1000
            ) AS j
            LIMIT 1000
        ) AS c
    ) AS bytes
