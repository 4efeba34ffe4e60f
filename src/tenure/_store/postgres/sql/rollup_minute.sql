-- $1 since, $2 until, $3 bounds
-- Fold the first minute, from $1 up to $2, in which an attempt ended: counts by queue and task, by
-- each alone and overall (named ''), with waits and run times in buckets below each of $3. Earlier
-- counts are replaced, never reduced. No row: no such minute.
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
), cell AS MATERIALIZED (
    -- Few rows, so that the many counts below are not computed for each attempt.
    SELECT t.minute, t.queue, t.task, t.outcome,
        width_bucket(t.wait, $3::float8[]) AS wait_bucket,
        width_bucket(t.run, $3) AS run_bucket,
        count(*)::integer AS count, sum(t.wait) AS wait, sum(t.run) AS run
    FROM timed AS t
    GROUP BY 1, 2, 3, 4, 5, 6
), folded AS (
    INSERT INTO /*schema.*/rollup_minute AS r (
        minute, queue, task, completed, failed, timed_out, snoozed, released, cancelled, lost, revoked,
        wait_sum, run_sum, waits, runs
    )
    SELECT c.minute, coalesce(c.queue, ''), coalesce(c.task, ''),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'completed'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'failed'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'timed_out'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'snoozed'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'released'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'cancelled'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'lost'), 0),
        coalesce(sum(c.count) FILTER (WHERE c.outcome = 'revoked'), 0),
        sum(c.wait), sum(c.run),
        ARRAY[
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 0), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 1), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 2), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 3), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 4), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 5), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 6), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 7), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 8), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 9), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 10), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 11), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 12), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 13), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 14), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 15), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 16), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 17), 0),
            coalesce(sum(c.count) FILTER (WHERE c.wait_bucket = 18), 0)
        ],
        ARRAY[
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 0), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 1), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 2), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 3), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 4), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 5), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 6), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 7), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 8), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 9), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 10), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 11), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 12), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 13), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 14), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 15), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 16), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 17), 0),
            coalesce(sum(c.count) FILTER (WHERE c.run_bucket = 18), 0)
        ]
    FROM cell AS c
    GROUP BY c.minute, CUBE (c.queue, c.task)
    ON CONFLICT (queue, task, minute) DO UPDATE SET
        completed = excluded.completed, failed = excluded.failed, timed_out = excluded.timed_out,
        snoozed = excluded.snoozed, released = excluded.released, cancelled = excluded.cancelled,
        lost = excluded.lost, revoked = excluded.revoked, wait_sum = excluded.wait_sum,
        run_sum = excluded.run_sum, waits = excluded.waits, runs = excluded.runs
    RETURNING r.minute
)
SELECT DISTINCT f.minute
FROM folded AS f
