-- $1 before
-- Find the newest audit id below another.
-- Uses audit_pkey backwards; locks nothing.
SELECT a.id FROM /*schema.*/audit AS a WHERE a.id < $1::bigint ORDER BY a.id DESC LIMIT 1
