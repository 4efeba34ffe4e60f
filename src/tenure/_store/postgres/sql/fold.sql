-- $1 since, $2 until, $3 bounds
-- Fold the first minute, from $1 up to $2, in which an attempt ended: its counts by queue and task,
-- waits and running times in buckets below each of $3, each worked out once per attempt. What was
-- counted before is replaced, nothing taken away. No row: there is no such minute.
-- Uses attempt_ended_at_idx of each day and rollup_minute_pkey; locks that minute's rows.
WITH first AS MATERIALIZED (
    SELECT date_bin('1 minute', t.ended_at, 'epoch') AS minute
    FROM /*schema.*/attempt AS t
    WHERE t.ended_at >= $1::timestamptz AND t.ended_at < $2::timestamptz
    ORDER BY t.ended_at
    LIMIT 1
), timed AS MATERIALIZED (
    SELECT f.minute, t.queue, t.task, t.outcome,
        greatest(date_part('epoch', t.started_at - t.due_at), 0) AS wait,
        greatest(date_part('epoch', t.ended_at - t.started_at), 0) AS run
    FROM first AS f
    JOIN /*schema.*/attempt AS t
        ON t.ended_at >= f.minute AND t.ended_at < f.minute + interval '1 minute'
), ended AS MATERIALIZED (
    SELECT t.*, width_bucket(t.wait, $3::double precision[]) AS wait_bucket,
        width_bucket(t.run, $3) AS run_bucket
    FROM timed AS t
), folded AS (
    INSERT INTO /*schema.*/rollup_minute AS r (
        minute, queue, task, completed, failed, timed_out, snoozed, released, cancelled, lost, revoked,
        wait_sum, run_sum, waits, runs
    )
    SELECT e.minute, e.queue, e.task,
        count(*) FILTER (WHERE e.outcome = 'completed'),
        count(*) FILTER (WHERE e.outcome = 'failed'),
        count(*) FILTER (WHERE e.outcome = 'timed_out'),
        count(*) FILTER (WHERE e.outcome = 'snoozed'),
        count(*) FILTER (WHERE e.outcome = 'released'),
        count(*) FILTER (WHERE e.outcome = 'cancelled'),
        count(*) FILTER (WHERE e.outcome = 'lost'),
        count(*) FILTER (WHERE e.outcome = 'revoked'),
        sum(e.wait), sum(e.run),
        ARRAY[
            count(*) FILTER (WHERE e.wait_bucket = 0), count(*) FILTER (WHERE e.wait_bucket = 1),
            count(*) FILTER (WHERE e.wait_bucket = 2), count(*) FILTER (WHERE e.wait_bucket = 3),
            count(*) FILTER (WHERE e.wait_bucket = 4), count(*) FILTER (WHERE e.wait_bucket = 5),
            count(*) FILTER (WHERE e.wait_bucket = 6), count(*) FILTER (WHERE e.wait_bucket = 7),
            count(*) FILTER (WHERE e.wait_bucket = 8), count(*) FILTER (WHERE e.wait_bucket = 9),
            count(*) FILTER (WHERE e.wait_bucket = 10), count(*) FILTER (WHERE e.wait_bucket = 11),
            count(*) FILTER (WHERE e.wait_bucket = 12), count(*) FILTER (WHERE e.wait_bucket = 13),
            count(*) FILTER (WHERE e.wait_bucket = 14), count(*) FILTER (WHERE e.wait_bucket = 15),
            count(*) FILTER (WHERE e.wait_bucket = 16), count(*) FILTER (WHERE e.wait_bucket = 17),
            count(*) FILTER (WHERE e.wait_bucket = 18)
        ],
        ARRAY[
            count(*) FILTER (WHERE e.run_bucket = 0), count(*) FILTER (WHERE e.run_bucket = 1),
            count(*) FILTER (WHERE e.run_bucket = 2), count(*) FILTER (WHERE e.run_bucket = 3),
            count(*) FILTER (WHERE e.run_bucket = 4), count(*) FILTER (WHERE e.run_bucket = 5),
            count(*) FILTER (WHERE e.run_bucket = 6), count(*) FILTER (WHERE e.run_bucket = 7),
            count(*) FILTER (WHERE e.run_bucket = 8), count(*) FILTER (WHERE e.run_bucket = 9),
            count(*) FILTER (WHERE e.run_bucket = 10), count(*) FILTER (WHERE e.run_bucket = 11),
            count(*) FILTER (WHERE e.run_bucket = 12), count(*) FILTER (WHERE e.run_bucket = 13),
            count(*) FILTER (WHERE e.run_bucket = 14), count(*) FILTER (WHERE e.run_bucket = 15),
            count(*) FILTER (WHERE e.run_bucket = 16), count(*) FILTER (WHERE e.run_bucket = 17),
            count(*) FILTER (WHERE e.run_bucket = 18)
        ]
    FROM ended AS e
    GROUP BY e.minute, e.queue, e.task
    ON CONFLICT (minute, queue, task) DO UPDATE SET
        completed = excluded.completed, failed = excluded.failed, timed_out = excluded.timed_out,
        snoozed = excluded.snoozed, released = excluded.released, cancelled = excluded.cancelled,
        lost = excluded.lost, revoked = excluded.revoked, wait_sum = excluded.wait_sum,
        run_sum = excluded.run_sum, waits = excluded.waits, runs = excluded.runs
    RETURNING r.minute
)
SELECT DISTINCT f.minute
FROM folded AS f
