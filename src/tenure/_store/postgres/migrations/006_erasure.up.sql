-- Erasure as a kind of operation. `waiting` holds the jobs that ran, or were locked, at their turn.
-- breaking: no

ALTER TABLE /*schema.*/operation ADD COLUMN waiting bigint[];
ALTER TABLE /*schema.*/operation DROP CONSTRAINT operation_kind_check;
ALTER TABLE /*schema.*/operation ADD CONSTRAINT operation_kind_check
    CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move', 'backfill', 'erase')) NOT VALID;
ALTER TABLE /*schema.*/operation VALIDATE CONSTRAINT operation_kind_check;
