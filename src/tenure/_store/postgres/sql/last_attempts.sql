-- $1 ids
-- Read each of these jobs' last ended attempt, without traceback and log.
-- Uses attempt_pkey of each day backwards; locks nothing.
SELECT
    t.job_id, t.token, t.due_at, t.started_at, t.ended_at, t.claimed_by, t.renewals, t.settle_repeats,
    t.attempt, t.late, t.outcome, t.queue, t.task, t.error_type, t.error_message,
    NULL::text AS error_trace, t.error_signature, NULL::text AS log, NULL::jsonb AS refused_result
FROM unnest($1::bigint[]) AS n (id)
CROSS JOIN LATERAL (
    SELECT * FROM /*schema.*/attempt AS t WHERE t.job_id = n.id ORDER BY t.token DESC LIMIT 1
) AS t
