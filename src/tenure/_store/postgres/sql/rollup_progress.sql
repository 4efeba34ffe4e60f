-- $1 now
-- Up to when minutes are folded and up to when they are final, NULL before the first; the time now.
-- Uses rollup_state_pkey; locks nothing.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now,
    (SELECT nullif(s.counted_until, 'epoch') FROM /*schema.*/rollup_state AS s WHERE s.singleton) AS counted_until,
    (SELECT nullif(s.final_to, 'epoch') FROM /*schema.*/rollup_state AS s WHERE s.singleton) AS final_to
