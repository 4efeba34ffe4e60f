-- $1 most
-- Count each queue's running jobs, among at most $1.
-- Uses job_expiry_idx; locks nothing.
SELECT r.queue, count(*) AS running
FROM (
    SELECT j.queue FROM /*schema.*/job AS j
    WHERE j.state = 'running'
    ORDER BY j.lease_expires_at
    LIMIT $1::integer
) AS r
GROUP BY r.queue
