-- $1 job_id
-- The ended running periods of one job, oldest first.
-- Uses attempt_pkey of each day; locks nothing.
SELECT
    t.job_id, t.token, t.due_at, t.started_at, t.ended_at, t.claimed_by, t.renewals, t.repeats,
    t.attempt, t.late, t.outcome, t.queue, t.task,
    t.error_type, t.error_message, t.error_trace, t.error_signature, t.log, t.refused
FROM /*schema.*/attempt AS t
WHERE t.job_id = $1::bigint
ORDER BY t.token
