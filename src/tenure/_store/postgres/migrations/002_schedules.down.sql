-- Takes schedules and their ticks away; the jobs that they made stay.
-- breaking: yes

DROP TABLE /*schema.*/schedule_tick, /*schema.*/schedule;
