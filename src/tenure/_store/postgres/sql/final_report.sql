-- $1 id, $2 token, $3 owner, $4 cursor, $5 item_keys, $6 items, $7 now
-- Record the last report of an attempt that settle.sql completes later in the same transaction;
-- ignore items with a known key. Like a completion, it needs the whole lease, which may have
-- expired. No row: the lease is lost, and the settle finds none either.
-- Uses job_pkey; locks the job's row, waiting.
WITH held AS MATERIALIZED (
    SELECT j.id
    FROM /*schema.*/job AS j
    WHERE j.id = $1::bigint AND j.token = $2::bigint AND j.claimed_by = $3::uuid
    FOR NO KEY UPDATE
), added AS (
    INSERT INTO /*schema.*/job_item (job_id, key, data)
    SELECT h.id, i.key, i.data
    FROM held AS h
    CROSS JOIN unnest($5::text[], $6::jsonb[]) AS i (key, data)
    ON CONFLICT (job_id, key) DO NOTHING
    RETURNING key
)
UPDATE /*schema.*/job AS j SET
    cursor = coalesce($4::jsonb, j.cursor),
    progress = coalesce(j.progress, '{}')
        || jsonb_build_object('at', coalesce($7::timestamptz, clock_timestamp())),
    items = j.items + (SELECT count(*) FROM added)
FROM held AS h
WHERE j.id = ANY (ARRAY[h.id])
RETURNING j.id
