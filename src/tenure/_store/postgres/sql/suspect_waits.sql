-- $1 queues, $2 worker_losses, $3 deaths, $4 now
-- Check for a due suspect in these queues ('*': any) that may only run in a process that holds
-- nothing else.
-- Uses job_suspect_idx; locks nothing.
SELECT EXISTS (
    SELECT
    FROM /*schema.*/job AS j
    WHERE j.suspect AND NOT j.held AND j.state = 'queued'
        AND (j.queue = ANY ($1::text[]) OR '*' = ANY ($1))
        AND (j.worker_losses >= $2::smallint OR j.deaths >= $3::smallint)
        AND j.run_at <= coalesce($4::timestamptz, statement_timestamp())
) AS waits
