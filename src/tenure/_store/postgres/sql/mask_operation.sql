-- $1 id, $2 filter
-- Replace an operation's filter and empty its reasons, also in its audit rows.
-- Uses operation_pkey and audit_target_idx; locks what it changes, waiting.
WITH audited AS (
    UPDATE /*schema.*/audit AS a SET
        reason = NULL,
        after = CASE WHEN a.after ? 'filter' THEN jsonb_set(a.after, '{filter}', $2::jsonb) ELSE a.after END
    WHERE a.target = 'operation:' || $1::bigint
    RETURNING a.id
)
UPDATE /*schema.*/operation AS o SET filter = $2, reason = NULL
WHERE o.id = $1
RETURNING (SELECT count(*) FROM audited) AS audited
