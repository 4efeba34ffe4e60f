-- Takes operations and what became of their items away; the jobs stay as they are.
-- breaking: yes

DROP TABLE /*schema.*/operation_item, /*schema.*/operation;
