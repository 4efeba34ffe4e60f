-- $1 lag, $2 now
-- Lock the rollup progress, and find the minutes that ended $1 ago. whole: all transactions that
-- were running when the mark was taken have ended, or the mark is another server's. If a clock was
-- set back, its minutes are folded again.
-- Uses rollup_state_pkey; locks its row; no row if another process has it locked.
SELECT c.closed_to,
    least(s.final_to, c.closed_to) AS final_to,
    least(s.marked_to, c.closed_to) AS marked_to,
    least(s.counted_until, c.closed_to) AS counted_until,
    s.mark <= pg_snapshot_xmin(c.running) OR s.mark > pg_snapshot_xmax(c.running) AS whole
FROM /*schema.*/rollup_state AS s
CROSS JOIN (
    SELECT pg_current_snapshot() AS running,
        date_bin('1 minute', coalesce($2::timestamptz, statement_timestamp()) - $1::interval, 'epoch') AS closed_to
) AS c
WHERE s.singleton
FOR UPDATE OF s SKIP LOCKED
