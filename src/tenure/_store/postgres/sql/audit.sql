-- $1 actor, $2 source, $3 action, $4 targets, $5 reason, $6 befores, $7 afters, $8 address
-- Record an action on targets, and the reason, in the transaction that makes the change. The
-- table gives the id and the time.
-- Inserts only: locks nothing.
INSERT INTO /*schema.*/audit (actor, source, action, target, reason, before, after, address)
SELECT $1::text, $2::text, $3::text, t.target, $5::text, t.before, t.after, $8::text
FROM unnest($4::text[], $6::jsonb[], $7::jsonb[]) AS t (target, before, after)
