-- $1 id, $2 schedules
-- Empty the free text and the values of audit rows about an erasure's jobs and schedules. Actor,
-- time and action stay.
-- Uses operation_item_pkey and audit_target_idx; locks what it changes, waiting.
UPDATE /*schema.*/audit AS a SET
    reason = NULL, before = NULL, after = NULL,
    target = CASE WHEN starts_with(a.target, 'job:') THEN a.target ELSE 'schedule:…' END
FROM (
    SELECT 'job:' || i.job_id AS target
    FROM /*schema.*/operation_item AS i
    WHERE i.operation_id = $1::bigint
    UNION ALL
    SELECT 'schedule:' || s.name FROM unnest($2::text[]) AS s (name)
) AS t
WHERE a.target = ANY (ARRAY[t.target])
    AND (num_nonnulls(a.reason, a.before, a.after) > 0 OR NOT starts_with(a.target, 'job:'))
RETURNING a.id
