-- $1 now
-- Read the clock, for durations such as "2 h ago".
-- Reads the clock; locks nothing.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
