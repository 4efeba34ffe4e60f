-- $1 names, $2 events, $3 queues, $4 tasks, $5 urls, $6 formats, $7 secrets, $8 group_fors, $9 thresholds, $10 program, $11 program_version, $12 now
-- Write the rules that a program declares, and delete those that it no longer declares. A rule with
-- another owner, or from a newer version of the program, is left alone. Returns what changed.
-- Uses notice_rule_pkey; locks the rules in name order.
WITH moment AS MATERIALIZED (
    SELECT coalesce($12::timestamptz, clock_timestamp()) AS now
), wanted AS MATERIALIZED (
    SELECT a.*
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
        $8::interval[], $9::interval[]
    ) AS a (name, event, queue, task, url, format, secret, group_for, threshold)
), known AS MATERIALIZED (
    SELECT r.*
    FROM /*schema.*/notice_rule AS r
    WHERE r.program = $10::text OR r.name = ANY ($1)
    ORDER BY r.name
    FOR UPDATE
), gone AS (
    DELETE FROM /*schema.*/notice_rule AS r
    USING known AS k
    WHERE r.name = k.name AND k.program = $10 AND NOT k.name = ANY ($1) AND k.program_version <= $11::bigint[]
    RETURNING r.name
), grouped AS (
    DELETE FROM /*schema.*/notice_group AS g USING gone AS o WHERE g.rule = o.name
), written AS (
    INSERT INTO /*schema.*/notice_rule AS r (
        name, event, queue, task, url, format, secret, group_for, threshold,
        program, program_version, created_at, created_by, changed_at
    )
    SELECT
        w.name, w.event, w.queue, w.task, w.url, w.format, w.secret, w.group_for, w.threshold,
        $10, $11, m.now, $10, m.now
    FROM wanted AS w
    CROSS JOIN moment AS m
    -- All rules are locked before the first is written: FOR UPDATE skips rows that this statement wrote.
    CROSS JOIN (SELECT count(*) FROM known) AS locked
    ORDER BY w.name
    ON CONFLICT (name) DO UPDATE SET
        event = excluded.event, queue = excluded.queue, task = excluded.task, url = excluded.url,
        format = excluded.format, secret = excluded.secret, group_for = excluded.group_for,
        threshold = excluded.threshold, program_version = excluded.program_version,
        changed_at = CASE
            WHEN (r.event, r.queue, r.task, r.url, r.format, r.secret, r.group_for, r.threshold)
                IS NOT DISTINCT FROM (
                    excluded.event, excluded.queue, excluded.task, excluded.url, excluded.format,
                    excluded.secret, excluded.group_for, excluded.threshold
                )
            THEN r.changed_at ELSE excluded.changed_at
        END
    WHERE r.program = $10 AND r.program_version <= $11
    RETURNING r.name
)
SELECT
    w.name,
    CASE
        WHEN d.name IS NULL THEN 'refused'
        WHEN k.name IS NULL THEN 'made'
        WHEN (k.event, k.queue, k.task, k.url, k.format, k.secret, k.group_for, k.threshold)
            IS DISTINCT FROM (w.event, w.queue, w.task, w.url, w.format, w.secret, w.group_for, w.threshold)
        THEN 'changed'
        ELSE 'kept'
    END AS outcome
FROM wanted AS w
LEFT JOIN known AS k ON k.name = w.name
LEFT JOIN written AS d ON d.name = w.name
UNION ALL
SELECT g.name, 'removed' FROM gone AS g
