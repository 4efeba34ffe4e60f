-- Dead letters stay dead letters. The checks are as they were: not validated.

ALTER TABLE /*schema.*/job_key DROP CONSTRAINT job_key_values_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_payload_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_names_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_lengths_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_times_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_counts_check;
ALTER TABLE /*schema.*/job ADD CONSTRAINT job_counts_check CHECK (
    id > 0 AND token BETWEEN 0 AND 4611686018427387904
    AND attempt BETWEEN 0 AND CASE state WHEN 'queued' THEN 32766 ELSE 32767 END AND max_attempts > 0
    AND losses BETWEEN 0 AND 32766 AND max_losses >= 0
    AND worker_losses BETWEEN 0 AND 32766 AND deaths BETWEEN 0 AND 32766
    AND renewals BETWEEN -1 AND 2147483646 AND items >= 0 AND target > 0
) NOT VALID;
ALTER TABLE /*schema.*/job ADD CONSTRAINT job_times_check CHECK (
    run_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND created_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND claimed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND renewed_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
    AND lease_expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
) NOT VALID;
ALTER TABLE /*schema.*/job ADD CONSTRAINT job_lengths_check CHECK (
    lease BETWEEN '1 second' AND '1 day' AND extract(year FROM lease) = 0
    AND extract(month FROM lease) = 0 AND extract(day FROM lease) = 0
    AND key_for BETWEEN '0' AND '36500 days' AND extract(year FROM key_for) = 0
    AND extract(month FROM key_for) = 0 AND extract(day FROM key_for) BETWEEN 0 AND 36500
) NOT VALID;
ALTER TABLE /*schema.*/job ADD CONSTRAINT job_names_check CHECK (
    char_length(queue) BETWEEN 1 AND 200 AND char_length(task) BETWEEN 1 AND 200
    AND char_length(key) BETWEEN 1 AND 400
) NOT VALID;
ALTER TABLE /*schema.*/job ADD CONSTRAINT job_payload_check CHECK (
    jsonb_typeof(args) = 'object' AND jsonb_typeof(meta) = 'object'
) NOT VALID;
ALTER TABLE /*schema.*/job_key ADD CONSTRAINT job_key_values_check CHECK (
    job_id >= 0 AND hits >= 0 AND expires_at BETWEEN '0001-01-02 00:00:00+00' AND '9999-12-31 23:59:59.999999+00'
) NOT VALID;
