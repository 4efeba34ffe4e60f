-- $1 actor, $2 source, $3 action, $4 targets, $5 reason, $6 befores, $7 afters, $8 now
-- Record who did what to which targets, and why; in the transaction of the change.
-- Inserts only: locks nothing.
INSERT INTO /*schema.*/audit (at, actor, source, action, target, reason, before, after)
SELECT coalesce($8::timestamptz, clock_timestamp()), $1::text, $2::text, $3::text, t.target, $5::text,
    t.before, t.after
FROM unnest($4::text[], $6::jsonb[], $7::jsonb[]) AS t (target, before, after)
