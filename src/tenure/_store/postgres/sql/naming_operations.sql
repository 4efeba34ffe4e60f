-- $1 texts, $2 schedules
-- Find operations whose selector contains one of these texts, or whose schedule is one of these.
-- Reads all operations; locks nothing.
SELECT o.id, o.filter
FROM /*schema.*/operation AS o
WHERE o.filter ->> 'schedule' = ANY ($2::text[])
    OR EXISTS (
        SELECT FROM unnest($1::text[]) AS t (text) WHERE strpos(o.filter ->> 'selector', t.text) > 0
    )
ORDER BY o.id
