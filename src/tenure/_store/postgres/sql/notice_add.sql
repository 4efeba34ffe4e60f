-- $1 event, $2 facts
-- Add events that a service has seen to the notices of each rule that matches them.
-- Locks the matching rules in name order.
SELECT /*schema.*/notice_add($1::text, $2::jsonb) AS added
