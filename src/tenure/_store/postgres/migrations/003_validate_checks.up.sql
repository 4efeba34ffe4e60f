-- Existing jobs that fail a check become dead letters with the reason 'unreadable', and their keys
-- expire. Jobs that Tenure itself enqueued pass. VALIDATE scans the tables while work continues.

WITH bad AS (
    DELETE FROM /*schema.*/job
    WHERE NOT (
        coalesce(
            id > 0 AND token BETWEEN 0 AND 4611686018427387904
            AND attempt BETWEEN 0 AND CASE state WHEN 'queued' THEN 32766 ELSE 32767 END AND max_attempts > 0
            AND losses BETWEEN 0 AND 32766 AND max_losses >= 0
            AND worker_losses BETWEEN 0 AND 32766 AND deaths BETWEEN 0 AND 32766
            AND renewals BETWEEN -1 AND 2147483646 AND items >= 0 AND target > 0
        , true)
        AND coalesce(
            run_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
            AND created_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
            AND claimed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
            AND renewed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
            AND lease_expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
        , true)
        AND coalesce(
            lease BETWEEN '1 second' AND '1 day' AND extract(year FROM lease) = 0
            AND extract(month FROM lease) = 0 AND extract(day FROM lease) = 0
            AND key_for BETWEEN '0' AND '36500 days' AND extract(year FROM key_for) = 0
            AND extract(month FROM key_for) = 0 AND extract(day FROM key_for) BETWEEN 0 AND 36500
        , true)
        AND coalesce(
            char_length(queue) BETWEEN 1 AND 200 AND char_length(task) BETWEEN 1 AND 200
            AND char_length(key) BETWEEN 1 AND 400
        , true)
        AND coalesce(
            jsonb_typeof(args) = 'object' AND jsonb_typeof(meta) = 'object'
        , true)
    )
    RETURNING *
), freed AS (
    UPDATE /*schema.*/job_key AS k SET expires_at = clock_timestamp()
    FROM bad AS b
    WHERE k.task = b.task AND k.key = b.key AND k.job_id = b.id
)
INSERT INTO /*schema.*/job_failed (
    id, token, run_at, created_at, claimed_at, lease_expires_at, ended_at, claimed_by, lease,
    items, target, priority, attempt, max_attempts, losses, max_losses, queue, task, key, key_for,
    done_reason, error_type, error_message, error_signature, args, cursor, progress, meta,
    worker_losses, deaths
)
SELECT
    b.id, b.token, b.run_at, b.created_at, b.claimed_at, b.lease_expires_at, clock_timestamp(),
    b.claimed_by, b.lease, b.items, b.target, b.priority, b.attempt, b.max_attempts, b.losses,
    b.max_losses, b.queue, b.task, b.key, b.key_for, 'unreadable', 'Unreadable',
    'the job fails a check of its table', 'Unreadable: the job fails a check of its table',
    b.args, b.cursor, b.progress, b.meta, b.worker_losses, b.deaths
FROM bad AS b;

UPDATE /*schema.*/job_key SET
    hits = greatest(hits, 1), job_id = greatest(job_id, 0), expires_at = clock_timestamp()
WHERE NOT coalesce(job_id >= 0 AND hits >= 0 AND expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00', true);

ALTER TABLE /*schema.*/job VALIDATE CONSTRAINT job_counts_check;
ALTER TABLE /*schema.*/job VALIDATE CONSTRAINT job_times_check;
ALTER TABLE /*schema.*/job VALIDATE CONSTRAINT job_lengths_check;
ALTER TABLE /*schema.*/job VALIDATE CONSTRAINT job_names_check;
ALTER TABLE /*schema.*/job VALIDATE CONSTRAINT job_payload_check;
ALTER TABLE /*schema.*/job_key VALIDATE CONSTRAINT job_key_values_check;
