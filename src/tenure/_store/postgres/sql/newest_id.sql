-- The newest id there has been.
-- Reads the sequence; locks nothing.
SELECT s.last_value AS id
FROM /*schema.*/job_id_seq AS s
