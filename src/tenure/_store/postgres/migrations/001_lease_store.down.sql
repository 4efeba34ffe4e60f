-- Takes the lease store away, with all that is in it.
-- breaking: yes

DROP TABLE /*schema.*/audit, /*schema.*/setting, /*schema.*/worker, /*schema.*/queue,
    /*schema.*/job_key, /*schema.*/job_item, /*schema.*/attempt, /*schema.*/job_failed,
    /*schema.*/job_archive, /*schema.*/job;
