-- $1 ids, $2 tokens, $3 owners, $4 outcomes, $5 refused_results
-- For leases that a settle didn't find, look up how the attempt ended. Counts a repeated settle;
-- keeps a different one as evidence.
-- Writes along the way, so the response is durable.
-- Uses attempt_pkey of each day; runs in a snapshot newer than the settle's.
WITH asked AS MATERIALIZED (
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::jsonb[])
        AS a (id, token, claimed_by, outcome, refused_result)
    ORDER BY a.id
)
UPDATE /*schema.*/attempt AS t SET
    settle_repeats = t.settle_repeats + 1,
    refused_result = CASE WHEN t.outcome <> a.outcome THEN coalesce(t.refused_result, a.refused_result) ELSE t.refused_result END
FROM asked AS a
WHERE t.job_id = ANY (ARRAY[a.id]) AND t.token = a.token AND t.claimed_by = a.claimed_by
RETURNING t.job_id AS id, t.token, t.claimed_by, t.outcome
