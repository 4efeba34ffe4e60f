-- $1 now
-- Read the time up to which minutes are folded and final (NULL before the first), and the time now.
-- Uses rollup_state_pkey; locks nothing.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now,
    (SELECT nullif(s.counted_until, 'epoch') FROM /*schema.*/rollup_state AS s WHERE s.singleton) AS counted_until,
    (SELECT nullif(s.final_to, 'epoch') FROM /*schema.*/rollup_state AS s WHERE s.singleton) AS final_to
