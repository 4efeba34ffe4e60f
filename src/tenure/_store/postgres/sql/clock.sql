-- $1 now
-- The time now: what is so long ago is reckoned from it.
-- Reads the clock; locks nothing.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
