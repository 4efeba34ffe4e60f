-- $1 queues, $2 longest_lease, $3 now
-- Mark running jobs as limited if they were claimed before their queue had a limit; the caller has
-- locked the queue's row. Claims in flight at that time appear later, so this is repeated until
-- none of their leases can still be held, even with the longest lease.
-- Uses job_expiry_idx; locks jobs in id order, waiting.
WITH stray AS MATERIALIZED (
    SELECT j.id
    FROM /*schema.*/job AS j
    WHERE j.state = 'running' AND NOT j.limited
        AND (j.queue = ANY ($1::text[]) OR '*' = ANY ($1))
    ORDER BY j.id
    FOR NO KEY UPDATE
), marked AS (
    UPDATE /*schema.*/job AS j SET limited = true
    FROM stray AS s
    WHERE j.id = ANY (ARRAY[s.id]) AND j.state = 'running'
)
UPDATE /*schema.*/queue AS q SET adopted = true
WHERE q.name = ANY ($1)
    AND q.limited_at + $2::interval < coalesce($3::timestamptz, statement_timestamp())
