-- $1 final_to, $2 marked_to, $3 counted_until, $4 take_mark
-- Record how far minutes are folded. A mark is the first transaction that hadn't begun to write.
-- Uses rollup_state_pkey; the row is locked already.
UPDATE /*schema.*/rollup_state AS s SET
    final_to = $1::timestamptz,
    marked_to = $2::timestamptz,
    counted_until = $3::timestamptz,
    mark = CASE WHEN $4::boolean THEN pg_snapshot_xmax(pg_current_snapshot()) ELSE s.mark END
WHERE s.singleton
