-- $1 ids, $2 tokens, $3 owners, $4 now
-- Which of these leases, that a renewal passed over, are still their jobs' and not over.
-- Uses job_pkey; locks nothing. Runs in a snapshot newer than the renewal's.
SELECT j.id, j.token
FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS a (id, token, claimed_by)
JOIN /*schema.*/job AS j ON j.id = a.id AND j.token = a.token AND j.claimed_by = a.claimed_by
WHERE j.lease_expires_at > coalesce($4::timestamptz, clock_timestamp())
