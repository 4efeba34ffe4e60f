-- $1 target, $2 before, $3 count
-- List the actions on one target, newest first, below an id.
-- Uses audit_target_idx backwards; locks nothing.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target, a.reason, a.before, a.after, a.address
FROM /*schema.*/audit AS a
WHERE a.target = $1::text AND a.id < $2::bigint
ORDER BY a.id DESC
LIMIT $3::integer
