-- $1 before
-- The newest id of the audit that is below another one.
-- Uses audit_pkey backwards; locks nothing.
SELECT a.id FROM /*schema.*/audit AS a WHERE a.id < $1::bigint ORDER BY a.id DESC LIMIT 1
