-- $1 id, $2 places, $3 outcomes, $4 counts, $5 chunk_limit, $6 job_ids, $7 now
-- Write the outcomes of a chunk's items and the jobs they created, and advance the operation: its
-- next chunk is due when the rate allows. After a delay it catches up by at most one second.
-- Uses operation_item_pkey and operation_pkey; the operation is locked, by due_operation.
WITH moment AS MATERIALIZED (
    SELECT coalesce($7::timestamptz, clock_timestamp()) AS now
), told AS (
    UPDATE /*schema.*/operation_item AS i SET
        outcome = t.outcome,
        job_id = coalesce(i.job_id, t.job_id)
    FROM unnest($2::integer[], $3::text[], $6::bigint[]) AS t (place, outcome, job_id)
    WHERE i.operation_id = $1::bigint AND i.place = ANY (ARRAY[t.place])
)
UPDATE /*schema.*/operation AS o SET
    state = CASE WHEN o.done + cardinality($2) < o.total THEN 'running' ELSE 'done' END,
    done = o.done + cardinality($2),
    chunk_limit = $5::integer,
    outcomes = $4::jsonb,
    started_at = coalesce(o.started_at, m.now),
    ended_at = CASE WHEN o.done + cardinality($2) >= o.total THEN m.now END,
    next_at = CASE
        WHEN o.done + cardinality($2) < o.total THEN
            greatest(o.next_at, m.now - interval '1 second')
            + make_interval(secs => cardinality($2)::double precision / o.rate)
    END
FROM moment AS m
WHERE o.id = $1
