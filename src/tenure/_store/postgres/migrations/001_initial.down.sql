-- Drops all tables, with everything in them.
-- breaking: yes

DROP TABLE
    /*schema.*/rollup_state,
    /*schema.*/rollup_minute,
    /*schema.*/idempotency,
    /*schema.*/api_token,
    /*schema.*/operation_item,
    /*schema.*/operation,
    /*schema.*/schedule_tick,
    /*schema.*/schedule,
    /*schema.*/audit,
    /*schema.*/setting,
    /*schema.*/worker,
    /*schema.*/queue,
    /*schema.*/job_key,
    /*schema.*/job_item,
    /*schema.*/attempt,
    /*schema.*/job_failed,
    /*schema.*/job_archive,
    /*schema.*/job;
