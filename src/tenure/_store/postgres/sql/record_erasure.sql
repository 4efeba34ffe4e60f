-- $1 id, $2 job_ids, $3 outcomes, $4 done, $5 counts, $6 chunk_limit, $7 waiting, $8 pause, $9 now
-- Write the outcomes of these jobs of an erasure and advance it: to its next chunk when the rate
-- allows, or after $8 if it only waits for running jobs. It is done when it waits for none.
-- Uses operation_item_job_idx, operation_item_pkey and operation_pkey; the operation is locked.
WITH moment AS MATERIALIZED (
    SELECT
        coalesce($9::timestamptz, clock_timestamp()) AS now,
        n.total > $4::integer OR cardinality($7::bigint[]) > 0 AS more
    FROM /*schema.*/operation AS n
    WHERE n.id = $1::bigint
), member AS MATERIALIZED (
    SELECT n.place, t.outcome
    FROM unnest($2::bigint[], $3::text[]) AS t (job_id, outcome)
    CROSS JOIN LATERAL (
        SELECT i.operation_id, i.place
        FROM /*schema.*/operation_item AS i
        WHERE i.job_id = t.job_id
        OFFSET 0
    ) AS n
    WHERE n.operation_id = $1
), written AS (
    UPDATE /*schema.*/operation_item AS i SET outcome = m.outcome
    FROM member AS m
    WHERE i.operation_id = $1 AND i.place = ANY (ARRAY[m.place])
)
UPDATE /*schema.*/operation AS o SET
    state = CASE WHEN m.more THEN 'running' ELSE 'done' END,
    done = $4,
    chunk_limit = $6::integer,
    waiting = $7,
    outcomes = $5::jsonb,
    started_at = coalesce(o.started_at, m.now),
    ended_at = CASE WHEN NOT m.more THEN m.now END,
    next_at = CASE
        WHEN m.more AND $8::interval IS NOT NULL THEN m.now + $8
        WHEN m.more THEN
            greatest(o.next_at, m.now - interval '1 second')
            + make_interval(secs => cardinality($2)::double precision / o.rate)
    END
FROM moment AS m
WHERE o.id = $1
