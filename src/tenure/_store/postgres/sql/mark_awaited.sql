-- $1 id
-- Request a notification when a live job ends; the settle that ends it sends one. If a settle is in
-- progress, waits for it and then finds no row.
-- Uses job_pkey; locks that row.
UPDATE /*schema.*/job AS j SET awaited = true
WHERE j.id = $1::bigint AND NOT j.awaited
