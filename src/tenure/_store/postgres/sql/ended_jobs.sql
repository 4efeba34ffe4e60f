-- $1 ids
-- Read what a job that runs again takes over from ended jobs. The archive does not have the lease,
-- the target, the losses and the time to keep the key: the new job gets the defaults.
-- Uses job_failed_pkey and job_archive_pkey of each day; locks nothing.
SELECT
    f.id, f.queue, f.task, f.args, f.priority, f.max_attempts, f.max_losses, f.lease, f.target,
    f.key, f.key_for, f.meta
FROM /*schema.*/job_failed AS f
WHERE f.id = ANY ($1::bigint[])
UNION ALL
SELECT
    a.id, a.queue, a.task, a.args, a.priority, a.max_attempts, NULL::smallint, NULL::interval,
    NULL::integer, a.key, NULL::interval, a.meta
FROM /*schema.*/job_archive AS a
WHERE a.id = ANY ($1)
