-- breaking: yes

ALTER TABLE /*schema.*/audit ALTER COLUMN at DROP DEFAULT;
ALTER TABLE /*schema.*/job_key DROP CONSTRAINT job_key_values_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_payload_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_names_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_lengths_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_times_check;
ALTER TABLE /*schema.*/job DROP CONSTRAINT job_counts_check;
