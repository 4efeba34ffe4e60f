-- $1 target, $2 before, $3 count
-- What was done to one target, newest first, below an id.
-- Uses audit_target_idx backwards; locks nothing.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target, a.reason, a.before, a.after
FROM /*schema.*/audit AS a
WHERE a.target = $1::text AND a.id < $2::bigint
ORDER BY a.id DESC
LIMIT $3::integer
