-- $1 since, $2 settled_to, $3 until
-- Sum what ended from $1 up to $3, by queue and task: for the minutes before $2, and for the rest.
-- Uses rollup_minute_minute_idx or rollup_minute_pkey, by skipping (PostgreSQL 18); locks nothing.
SELECT r.queue, r.task, r.minute < $2::timestamptz AS settled,
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
WHERE r.minute >= $1::timestamptz AND r.minute < $3::timestamptz AND r.queue <> '' AND r.task <> ''
GROUP BY 1, 2, 3
