-- Notices: their rules, their groups, and the triggers that enqueue them with a dead letter or a missed tick.
-- breaking: no

-- The rules for notices: which events call which receiver. An operator creates them, or a program
-- declares them in its code. url is NULL where the secret is the URL. The secret is only a name.
CREATE TABLE /*schema.*/notice_rule (
    name            text        NOT NULL,
    event           text        NOT NULL,
    queue           text        NOT NULL,
    task            text        NOT NULL,
    url             text,
    format          text        NOT NULL,
    secret          text        NOT NULL,
    group_for       interval    NOT NULL,
    threshold       interval,
    program         text,
    program_version bigint[]    NOT NULL DEFAULT '{}',
    created_at      timestamptz NOT NULL,
    created_by      text        NOT NULL,
    changed_at      timestamptz NOT NULL,
    CONSTRAINT notice_rule_pkey PRIMARY KEY (name),
    CONSTRAINT notice_rule_event_check
        CHECK (event IN ('failed', 'queue_behind', 'schedule_missed', 'worker_lost')),
    CONSTRAINT notice_rule_format_check CHECK (format IN ('standard', 'slack', 'pagerduty')),
    CONSTRAINT notice_rule_threshold_check CHECK ((threshold IS NOT NULL) = (event = 'queue_behind'))
);

-- The latest notice of each group of events with one cause: its job, and when that was or is due.
CREATE TABLE /*schema.*/notice_group (
    rule   text        NOT NULL,
    key    text        NOT NULL,
    job_id bigint      NOT NULL,
    due_at timestamptz NOT NULL,
    CONSTRAINT notice_group_pkey PRIMARY KEY (rule, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX notice_group_due_idx ON /*schema.*/notice_group (due_at);

-- Adds events to the notices of each rule that matches them: to the group's notice that no worker has
-- claimed yet, or to a new one. The first notice of a group is due now, the next one group_for after
-- the last. A rule with 100 groups within group_for counts further causes in one group, '~'.
-- Locks the rules in name order. So events of one rule wait for each other, and a group changes in one
-- transaction at a time. It never waits for a job's row, because settles come here with jobs locked.
CREATE OR REPLACE FUNCTION /*schema.*/notice_add(
    event text,
    facts jsonb
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    rule record;
    fact record;
    last record;
    moment timestamptz;
    due timestamptz;
    open_id bigint;
    added integer := 0;
    is_due boolean := false;
BEGIN
    FOR rule IN
        SELECT r.name, r.group_for, r.threshold,
            replace(replace(r.queue, '_', '\_'), '*', '%') AS queues,
            replace(replace(r.task, '_', '\_'), '*', '%') AS tasks
        FROM /*schema.*/notice_rule AS r
        WHERE r.event = notice_add.event AND EXISTS (
            SELECT FROM jsonb_to_recordset(facts) AS f (queue text, task text, waited double precision)
            WHERE f.queue LIKE replace(replace(r.queue, '_', '\_'), '*', '%')
                AND f.task LIKE replace(replace(r.task, '_', '\_'), '*', '%')
                AND (r.threshold IS NULL OR f.waited >= extract(epoch FROM r.threshold))
        )
        ORDER BY r.name
        FOR NO KEY UPDATE OF r
    LOOP
        moment := clock_timestamp();
        FOR fact IN
            SELECT
                f.key, min(f.queue) AS queue, min(f.task) AS task, sum(f.count) AS count,
                min(f.first_at) AS first_at, max(f.last_at) AS last_at,
                min(f.job_id) AS job_id, max(f.last_job_id) AS last_job_id,
                (array_agg(f.subject))[1] AS subject, max(f.waited) AS waited
            FROM jsonb_to_recordset(facts) AS f (
                key text, queue text, task text, count integer, first_at text, last_at text,
                job_id bigint, last_job_id bigint, subject text, waited double precision
            )
            WHERE f.queue LIKE rule.queues AND f.task LIKE rule.tasks
                AND (rule.threshold IS NULL OR f.waited >= extract(epoch FROM rule.threshold))
            GROUP BY f.key
            ORDER BY f.key
        LOOP
            added := added + 1;
            SELECT g.key, g.job_id, g.due_at INTO last
            FROM /*schema.*/notice_group AS g
            WHERE g.rule = rule.name AND g.key = fact.key;
            IF last.key IS NULL AND 100 <= (
                SELECT count(*) FROM /*schema.*/notice_group AS g
                WHERE g.rule = rule.name AND g.key <> '~' AND g.due_at > moment - rule.group_for
            ) THEN
                fact.key := '~';
                SELECT g.key, g.job_id, g.due_at INTO last
                FROM /*schema.*/notice_group AS g
                WHERE g.rule = rule.name AND g.key = fact.key;
            END IF;

            open_id := NULL;
            UPDATE /*schema.*/job AS j SET args = j.args || jsonb_strip_nulls(jsonb_build_object(
                'count', (j.args ->> 'count')::bigint + fact.count,
                'last_at', fact.last_at, 'last_job_id', fact.last_job_id,
                'subject', fact.subject, 'waited', fact.waited
            ))
            WHERE j.id = (
                -- A job that has ever been claimed has another token. One that an operator has locked is
                -- left alone.
                SELECT o.id FROM /*schema.*/job AS o
                WHERE o.id = last.job_id AND o.task = 'tenure.notice' AND o.state = 'queued' AND o.token = 0
                FOR UPDATE SKIP LOCKED
            )
            RETURNING j.id INTO open_id;
            CONTINUE WHEN open_id IS NOT NULL;

            due := greatest(moment, last.due_at + rule.group_for);
            is_due := is_due OR due = moment;
            INSERT INTO /*schema.*/job AS j (
                queue, task, args, priority, created_at, run_at, max_attempts, max_losses
            )
            VALUES (
                'tenure.notices', 'tenure.notice',
                jsonb_strip_nulls(jsonb_build_object(
                    'rule', rule.name, 'event', notice_add.event, 'group', fact.key,
                    'queue', fact.queue, 'task', fact.task, 'count', fact.count,
                    'first_at', fact.first_at, 'last_at', fact.last_at,
                    'job_id', fact.job_id, 'last_job_id', fact.last_job_id,
                    'subject', fact.subject, 'waited', fact.waited
                )),
                5, moment, due, 10, 3
            )
            RETURNING j.id INTO open_id;
            INSERT INTO /*schema.*/notice_group AS g (rule, key, job_id, due_at)
            VALUES (rule.name, fact.key, open_id, due)
            ON CONFLICT ON CONSTRAINT notice_group_pkey
                DO UPDATE SET job_id = excluded.job_id, due_at = excluded.due_at;
        END LOOP;
    END LOOP;
    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    IF is_due AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify(rtrim('/*schema.*/', '.') || '_wakeup', 'tenure.notices');
    END IF;
    RETURN added;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_add FROM PUBLIC;

-- Adds the dead letters of one statement to the notices of the event failed. The failure of a notice is
-- not an event.
CREATE OR REPLACE FUNCTION /*schema.*/notice_failed(
)
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM /*schema.*/notice_rule AS r WHERE r.event = 'failed') THEN
        PERFORM /*schema.*/notice_add('failed', jsonb_agg(to_jsonb(f)))
        FROM (
            SELECT
                md5(format('%s %s', d.task, d.error_signature)) AS key, d.queue, d.task,
                count(*) AS count,
                to_char(min(d.ended_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS first_at,
                to_char(max(d.ended_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_at,
                min(d.id) AS job_id, max(d.id) AS last_job_id
            FROM dead AS d
            WHERE d.queue <> 'tenure.notices' AND d.task <> 'tenure.notice'
            GROUP BY d.queue, d.task, d.error_signature
        ) AS f
        HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_failed FROM PUBLIC;

CREATE TRIGGER job_failed_notice AFTER INSERT ON /*schema.*/job_failed
    REFERENCING NEW TABLE AS dead
    FOR EACH STATEMENT EXECUTE FUNCTION /*schema.*/notice_failed();

-- Adds the missed ticks of one statement to the notices of the event schedule_missed.
CREATE OR REPLACE FUNCTION /*schema.*/notice_missed(
)
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM /*schema.*/notice_rule AS r WHERE r.event = 'schedule_missed') THEN
        PERFORM /*schema.*/notice_add('schedule_missed', jsonb_agg(to_jsonb(f)))
        FROM (
            SELECT
                t.schedule AS key, t.schedule AS subject, s.queue, s.task, count(*) AS count,
                to_char(min(t.fire_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS first_at,
                to_char(max(t.fire_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_at
            FROM tick AS t
            JOIN /*schema.*/schedule AS s ON s.name = t.schedule
            WHERE t.reason = 'missed'
            GROUP BY t.schedule, s.queue, s.task
        ) AS f
        HAVING count(*) > 0;
    END IF;
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/notice_missed FROM PUBLIC;

CREATE TRIGGER schedule_tick_notice AFTER INSERT ON /*schema.*/schedule_tick
    REFERENCING NEW TABLE AS tick
    FOR EACH STATEMENT EXECUTE FUNCTION /*schema.*/notice_missed();
