-- Takes erasures back out, with the rows of those that were made.
-- breaking: yes

DELETE FROM /*schema.*/operation_item AS i
USING /*schema.*/operation AS o
WHERE i.operation_id = o.id AND o.kind = 'erase';
DELETE FROM /*schema.*/operation WHERE kind = 'erase';
ALTER TABLE /*schema.*/operation DROP CONSTRAINT operation_kind_check;
ALTER TABLE /*schema.*/operation ADD CONSTRAINT operation_kind_check
    CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move', 'backfill')) NOT VALID;
ALTER TABLE /*schema.*/operation VALIDATE CONSTRAINT operation_kind_check;
ALTER TABLE /*schema.*/operation DROP COLUMN waiting;
