-- $1 id
-- Ask to be told when a live job ends: the settle that ends it then notifies. Behind a settle
-- that is on its way this waits, and then finds no row.
-- Uses job_pkey; locks that row.
UPDATE /*schema.*/job AS j SET awaited = true
WHERE j.id = $1::bigint AND NOT j.awaited
