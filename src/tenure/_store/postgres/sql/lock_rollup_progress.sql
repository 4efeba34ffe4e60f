-- $1 lag, $2 now
-- How far minutes are folded, and up to where they could be: those that are over by $1. whole: all
-- that was running when the mark was taken has ended, or the mark is another server's. After a
-- clock was set back, its minutes are folded again.
-- Uses rollup_state_pkey; locks its row, and answers with none if another one is at it.
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
