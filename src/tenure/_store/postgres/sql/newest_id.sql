-- Read the newest id.
-- Reads the sequence; locks nothing.
SELECT s.last_value AS id
FROM /*schema.*/job_id_seq AS s
