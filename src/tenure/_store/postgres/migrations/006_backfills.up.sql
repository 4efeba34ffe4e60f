-- Backfills of schedules are operations: their members are ticks, and name their jobs once these are
-- made.
-- breaking: no

ALTER TABLE /*schema.*/operation
    DROP CONSTRAINT operation_kind_check,
    ADD CONSTRAINT operation_kind_check
        CHECK (kind IN ('retry', 'cancel', 'discard', 'delete', 'move', 'backfill'));

ALTER TABLE /*schema.*/operation_item
    ALTER COLUMN job_id DROP NOT NULL,
    ADD COLUMN fire_at timestamptz;
