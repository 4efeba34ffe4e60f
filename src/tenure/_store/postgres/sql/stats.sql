-- $1 since, $2 until, $3 step, $4 queue, $5 task
-- Sum what ended from $1 up to $2, in steps of $3, for a queue and a task, or for all (''), from
-- the folded minutes. A step without attempts has no row.
-- Uses rollup_minute_pkey; locks nothing.
SELECT date_bin($3::interval, r.minute, $1::timestamptz) AS since,
    sum(r.completed) AS completed, sum(r.failed) AS failed, sum(r.timed_out) AS timed_out, sum(r.snoozed) AS snoozed,
    sum(r.released) AS released, sum(r.cancelled) AS cancelled, sum(r.lost) AS lost, sum(r.revoked) AS revoked,
    sum(r.wait_sum) AS wait_sum, sum(r.run_sum) AS run_sum,
    ARRAY[
        sum(r.waits[1]), sum(r.waits[2]), sum(r.waits[3]), sum(r.waits[4]),
        sum(r.waits[5]), sum(r.waits[6]), sum(r.waits[7]), sum(r.waits[8]),
        sum(r.waits[9]), sum(r.waits[10]), sum(r.waits[11]), sum(r.waits[12]),
        sum(r.waits[13]), sum(r.waits[14]), sum(r.waits[15]), sum(r.waits[16]),
        sum(r.waits[17]), sum(r.waits[18]), sum(r.waits[19])
    ] AS waits,
    ARRAY[
        sum(r.runs[1]), sum(r.runs[2]), sum(r.runs[3]), sum(r.runs[4]),
        sum(r.runs[5]), sum(r.runs[6]), sum(r.runs[7]), sum(r.runs[8]),
        sum(r.runs[9]), sum(r.runs[10]), sum(r.runs[11]), sum(r.runs[12]),
        sum(r.runs[13]), sum(r.runs[14]), sum(r.runs[15]), sum(r.runs[16]),
        sum(r.runs[17]), sum(r.runs[18]), sum(r.runs[19])
    ] AS runs
FROM /*schema.*/rollup_minute AS r
WHERE r.queue = $4::text AND r.task = $5::text
    AND r.minute >= $1 AND r.minute < $2::timestamptz
GROUP BY 1
ORDER BY 1
