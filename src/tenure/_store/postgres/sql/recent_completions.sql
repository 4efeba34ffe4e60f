-- $1 count, $2 most, $3 now
-- List the last attempts that completed a job, among the last $2 that ended since yesterday.
-- Uses attempt_ended_at_idx backwards; locks nothing.
SELECT t.job_id, t.queue, t.task, t.attempt, t.claimed_by, t.started_at, t.ended_at
FROM (
    SELECT a.job_id, a.queue, a.task, a.attempt, a.claimed_by, a.started_at, a.ended_at, a.outcome
    FROM /*schema.*/attempt AS a
    WHERE a.filed_on >= (coalesce($3::timestamptz, statement_timestamp()) AT TIME ZONE 'UTC')::date - 1
    ORDER BY a.ended_at DESC
    LIMIT $2::integer
) AS t
WHERE t.outcome = 'completed'
ORDER BY t.ended_at DESC
LIMIT $1::integer
