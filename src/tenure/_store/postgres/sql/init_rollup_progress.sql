-- Insert the rollup progress row if missing. ON CONFLICT alone would wait for a process that is
-- folding.
-- Uses rollup_state_pkey; locks nothing.
INSERT INTO /*schema.*/rollup_state (final_to, marked_to, counted_until, mark)
SELECT 'epoch', 'epoch', 'epoch', pg_snapshot_xmax(pg_current_snapshot())
WHERE NOT EXISTS (SELECT FROM /*schema.*/rollup_state AS s WHERE s.singleton)
ON CONFLICT DO NOTHING
