-- Forgets backfills; the jobs that they made stay, and their ticks say so.
-- breaking: yes

DELETE FROM /*schema.*/operation_item AS i
USING /*schema.*/operation AS o
WHERE o.kind = 'backfill' AND i.operation_id = o.id;

DELETE FROM /*schema.*/operation WHERE kind = 'backfill';

ALTER TABLE /*schema.*/operation
    DROP CONSTRAINT operation_kind_check,
    ADD CONSTRAINT operation_kind_check
        CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move'));

ALTER TABLE /*schema.*/operation_item
    DROP COLUMN fire_at,
    ALTER COLUMN job_id SET NOT NULL;
