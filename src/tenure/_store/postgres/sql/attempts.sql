-- $1 job_id
-- Read a job's ended attempts, oldest first. A dead letter's are still read after their days were
-- dropped, from the copy filed with it.
-- Uses attempt_pkey of each day and job_failed_pkey; locks nothing.
WITH kept AS MATERIALIZED (
    SELECT
        t.job_id, t.token, t.due_at, t.started_at, t.ended_at, t.claimed_by, t.renewals, t.settle_repeats,
        t.attempt, t.late, t.outcome, t.queue, t.task,
        t.error_type, t.error_message, t.error_trace, t.error_signature, t.log, t.refused_result
    FROM /*schema.*/attempt AS t
    WHERE t.job_id = $1::bigint
)
SELECT k.* FROM kept AS k
UNION ALL
SELECT
    h.job_id, h.token, h.due_at, h.started_at, h.ended_at, h.claimed_by, h.renewals,
    coalesce(h.settle_repeats, 0), h.attempt, h.late, h.outcome, h.queue, h.task,
    h.error_type, h.error_message, h.error_trace, h.error_signature, h.log, h.refused_result
FROM /*schema.*/job_failed AS f
CROSS JOIN LATERAL jsonb_to_recordset(f.history) AS h (
    job_id bigint, token bigint, due_at timestamptz, started_at timestamptz, ended_at timestamptz,
    claimed_by uuid, renewals integer, settle_repeats integer, attempt smallint, late boolean, outcome text,
    queue text, task text, error_type text, error_message text, error_trace text,
    error_signature text, log text, refused_result jsonb
)
WHERE f.id = $1 AND h.token NOT IN (SELECT k.token FROM kept AS k)
ORDER BY token
