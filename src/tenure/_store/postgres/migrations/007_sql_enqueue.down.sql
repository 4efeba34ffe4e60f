-- Takes the function back that enqueues from SQL. A trigger that calls it fails from then on.
-- breaking: no

DROP FUNCTION IF EXISTS /*schema.*/enqueue;
