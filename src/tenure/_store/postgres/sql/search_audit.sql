-- $1 before, $2 lowest, $3 count, $4 actor, $5 source, $6 action, $7 enqueued
-- Search the audit log, newest first, within a range of ids: by part of an actor's name, a source,
-- an action or its first word; with or without enqueues. The search is bounded.
-- Uses audit_pkey backwards; locks nothing.
SELECT a.id, a.at, a.actor, a.source, a.action, a.target, a.reason, a.before, a.after, a.address
FROM /*schema.*/audit AS a
WHERE a.id < $1::bigint AND a.id >= $2::bigint
    AND (strpos(a.actor, $4::text) > 0 OR $4 IS NULL)
    AND (a.source = $5::text OR $5 IS NULL)
    AND (a.action = $6::text OR starts_with(a.action, $6 || '.') OR $6 IS NULL)
    AND ($7::boolean OR a.action <> 'enqueue')
ORDER BY a.id DESC
LIMIT $3::integer
