-- $1 tasks, $2 keys, $3 now
-- Take keys for a role that can't choose ids, each (task, key) at most once per call. A key that is
-- free is taken for job 0, and enqueue_taken writes its job in the same transaction. If a key is
-- held, returns the job that holds it. It writes, to be as durable as the job.
-- Uses job_key_pkey; locks keys in (task, key) order.
INSERT INTO /*schema.*/job_key AS k (task, key, job_id)
SELECT a.task, a.key, 0
FROM unnest($1::text[], $2::text[]) AS a (task, key)
ORDER BY a.task, a.key
ON CONFLICT (task, key) DO UPDATE SET
    hits = least(k.hits, 2147483646) + 1,
    job_id = CASE
        WHEN k.expires_at <= coalesce($3::timestamptz, clock_timestamp()) THEN 0
        ELSE k.job_id
    END,
    expires_at = CASE
        WHEN k.expires_at <= coalesce($3, clock_timestamp()) THEN NULL
        ELSE k.expires_at
    END
RETURNING k.task, k.key, k.job_id
