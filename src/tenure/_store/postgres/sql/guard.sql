-- $1 id, $2 token, $3 owner
-- Fence the caller's commit without ending the job: until then, no other worker can take the lease.
-- No row: the lease is lost. Renewals continue meanwhile.
-- Uses job_pkey; locks the job's row FOR KEY SHARE, waiting.
SELECT j.id, current_setting('transaction_isolation') AS isolation
FROM /*schema.*/job AS j
WHERE j.id = $1::bigint AND j.token = $2::bigint AND j.claimed_by = $3::uuid
FOR KEY SHARE
