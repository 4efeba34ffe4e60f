-- Adds the function that enqueues a job from SQL.
-- breaking: no

CREATE OR REPLACE FUNCTION /*schema.*/enqueue(
    task text,
    args jsonb DEFAULT '{}'::jsonb,
    queue text DEFAULT NULL::text,
    priority integer DEFAULT NULL::integer,
    run_at timestamp with time zone DEFAULT NULL::timestamp with time zone,
    delay interval DEFAULT NULL::interval,
    key text DEFAULT NULL::text,
    key_for interval DEFAULT NULL::interval,
    max_attempts integer DEFAULT NULL::integer,
    lease interval DEFAULT NULL::interval,
    timeout interval DEFAULT NULL::interval,
    expires_in interval DEFAULT NULL::interval,
    tags text[] DEFAULT NULL::text[],
    target integer DEFAULT NULL::integer,
    held boolean DEFAULT false
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    name_pattern CONSTANT text := '^[A-Za-z0-9_][A-Za-z0-9_.:/<>@-]*$';
    most_bytes CONSTANT integer := 262144;
    most_seconds CONSTANT numeric := 36500 * 86400.0;
    -- The longest duration that Python can represent.
    endless_seconds CONSTANT numeric := 999999999 * 86400.0;
    names CONSTANT text[] := '{delay,key_for,lease,timeout,expires_in}';
    lengths CONSTANT interval[] := ARRAY[delay, key_for, lease, timeout, expires_in];
    seconds numeric[] := '{}';
    meta jsonb;
    size integer;
    moment timestamptz;
    new_id bigint;
    problem text;
    fix text;
BEGIN
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 5);

    -- A day is 24 hours, whatever the session's time zone. At least one digit follows the point, as in
    -- a Python float, so that the stored options are the same.
    FOR i IN 1..5 LOOP
        CONTINUE WHEN lengths[i] IS NULL;
        IF NOT isfinite(lengths[i]) OR extract(year FROM lengths[i]) <> 0 OR extract(month FROM lengths[i]) <> 0 THEN
            problem := format('%s must be a fixed length of time, got %s', names[i], lengths[i]);
            fix := 'Write days, hours, minutes or seconds. Months and years vary in length.';
            EXIT;
        END IF;
        seconds[i] := trim_scale(extract(epoch FROM lengths[i]));
        seconds[i] := round(seconds[i], greatest(scale(seconds[i]), 1));
    END LOOP;

    IF problem IS NOT NULL THEN
        NULL;
    ELSIF task IS NULL OR length(task) > 200 OR task COLLATE "C" !~ name_pattern THEN
        problem := format(
            'task name must be 1 to 200 letters, digits and _ . : / < > @ -, beginning with a letter, digit or _, got %L',
            left(task, 60)
        );
        fix := 'Pass the name that a worker registers, such as ''mail.send''.';
    ELSIF task ~ '^tenure\.\w+$' THEN
        -- Only Python can check the arguments of HTTP, shell and other work.
        problem := format('task name must not be one that Tenure reserves, got %L', task);
        fix := 'Enqueue a task of your own that does the work, or use the HTTP API.';
    ELSIF length(queue) > 200 OR queue COLLATE "C" !~ name_pattern THEN
        problem := format(
            'queue name must be 1 to 200 letters, digits and _ . : / < > @ -, beginning with a letter, digit or _, got %L',
            left(queue, 60)
        );
        fix := 'Choose another name, such as ''mail''.';
    ELSIF args IS NULL OR jsonb_typeof(args) <> 'object' THEN
        problem := format('args must be a JSON object, got %s', coalesce(jsonb_typeof(args), 'NULL'));
        fix := 'Pass the arguments by name, as in jsonb_build_object(''to'', ''ada'').';
    ELSIF jsonb_path_exists(args, 'strict $.**{65}') THEN
        problem := 'args must be nested at most 64 deep, got more';
        fix := 'Flatten them.';
    ELSIF jsonb_path_exists(args, 'strict $.** ? (@ >= 9223372036854775808 || @ < -9223372036854775808)') THEN
        problem := 'args must not contain a number beyond 64 bits, got one';
        fix := 'Pass it as a string.';
    ELSIF priority NOT BETWEEN 0 AND 9 THEN
        problem := format('priority must be 0 to 9, got %s', priority);
        fix := '9 is the most urgent (default: 5).';
    ELSIF run_at IS NOT NULL AND delay IS NOT NULL THEN
        problem := 'run_at must be NULL if you pass delay, got both';
        fix := 'Pass one of them.';
    ELSIF run_at NOT BETWEEN '0001-01-01 00:00:00+00' AND '9999-12-31 23:59:59.999999+00' THEN
        problem := format('run_at must be in the years 1 to 9999 in UTC, got %s', run_at);
        fix := 'Choose another time.';
    ELSIF seconds[1] > most_seconds THEN
        problem := format('delay must be at most 36500 days, got %s', delay);
        fix := 'Choose a shorter delay.';
    ELSIF length(key) NOT BETWEEN 1 AND 400 THEN
        problem := format('key must have 1 to 400 characters, got %s', length(key));
        fix := 'Shorten it, for example with md5().';
    ELSIF key_for IS NOT NULL AND key IS NULL THEN
        problem := 'key_for must be NULL without a key, got ' || key_for;
        fix := 'Pass a key, too.';
    ELSIF seconds[2] NOT BETWEEN 0 AND most_seconds THEN
        problem := format('key_for must be 0 to 36500 days, got %s', key_for);
        fix := 'Choose another duration.';
    ELSIF max_attempts NOT BETWEEN 1 AND 32767 THEN
        problem := format('max_attempts must be 1 to 32767, got %s', max_attempts);
        fix := 'Omit it to use the default of the queue or the installation.';
    ELSIF seconds[3] <= 6 OR seconds[3] > 86400 THEN
        problem := format('lease must be more than 6 seconds and at most 1 day, got %s', lease);
        fix := 'Workers renew the lease while a job runs (default: 30 s).';
    ELSIF seconds[4] <= 0 OR seconds[4] > endless_seconds THEN
        problem := format('timeout must be positive and at most 999999999 days, got %s', timeout);
        fix := 'Omit it to use the time limit of the task.';
    ELSIF seconds[5] <= 0 OR seconds[5] > endless_seconds THEN
        problem := format('expires_in must be positive and at most 999999999 days, got %s', expires_in);
        fix := 'Omit it for a job that does not expire.';
    ELSIF seconds[1] >= seconds[5] THEN
        problem := format('delay must be less than expires_in (%s), got %s', expires_in, delay);
        fix := 'expires_in counts from the enqueue, so the job would never run.';
    ELSIF extract(epoch FROM run_at) - extract(epoch FROM clock_timestamp()) >= seconds[5] THEN
        problem := format('run_at must be earlier than expires_in (%s) from now, got %s', expires_in, run_at);
        fix := 'expires_in counts from the enqueue, so the job would never run.';
    ELSIF array_ndims(tags) > 1 OR array_position(tags, NULL) IS NOT NULL THEN
        problem := format('tags must be a list of strings, got %s', left(tags::text, 60));
        fix := 'Write tags => ARRAY[''spring'', ''vip''].';
    ELSIF target < 1 THEN
        problem := format('target must be 1 to 2147483647, got %s', target);
        fix := 'Omit it for a job without a target.';
    END IF;

    IF problem IS NULL THEN
        meta := jsonb_strip_nulls(jsonb_build_object(
            'tags', CASE WHEN cardinality(tags) > 0 THEN to_jsonb(tags) END,
            'timeout', seconds[4],
            'expires_in', seconds[5]
        ));
        FOR i IN 1..2 LOOP
            size := octet_length(CASE i WHEN 1 THEN args ELSE meta END::text);
            -- The limit is for JSON without spaces, which is at least half as long.
            IF size BETWEEN most_bytes + 1 AND most_bytes * 2 THEN
                size := size - length(regexp_replace(
                    regexp_replace(CASE i WHEN 1 THEN args ELSE meta END::text, '"([^"\\]|\\.)*"', '', 'g'),
                    '[^ ]', '', 'g'
                ));
            END IF;
            IF size > most_bytes THEN
                problem := format(
                    '%s must be at most %s bytes of JSON, got %s',
                    CASE i WHEN 1 THEN 'args' ELSE 'tags' END, most_bytes, size
                );
                fix := 'Store the data elsewhere and pass a reference to it.';
                EXIT;
            END IF;
        END LOOP;
    END IF;

    IF problem IS NOT NULL THEN
        RAISE EXCEPTION USING
            MESSAGE = 'tenure: ' || problem, HINT = fix, ERRCODE = 'invalid_parameter_value';
    END IF;

    -- As in take_keys: a producer cannot choose ids, so the key is taken for job 0 first. If it is
    -- held, the row is written, too: the answer is as durable as the job.
    IF key IS NOT NULL THEN
        INSERT INTO /*schema.*/job_key AS k (task, key, job_id)
        VALUES (enqueue.task, enqueue.key, 0)
        ON CONFLICT (task, key) DO UPDATE SET
            hits = least(k.hits, 2147483646) + 1,
            (job_id, expires_at) = (
                -- One reading of the clock for both, after the wait for the key's row.
                SELECT CASE WHEN c.ended THEN 0 ELSE k.job_id END, CASE WHEN c.ended THEN NULL ELSE k.expires_at END
                FROM (SELECT coalesce(k.expires_at <= clock_timestamp(), false) AS ended OFFSET 0) AS c
            )
        RETURNING k.job_id INTO new_id;
        IF new_id <> 0 THEN
            RETURN new_id;
        END IF;
    END IF;

    moment := clock_timestamp();
    INSERT INTO /*schema.*/job AS j (
        queue, task, key, key_for, args, priority, created_at, run_at,
        max_attempts, max_losses, lease, target, meta, held
    )
    VALUES (
        enqueue.queue, enqueue.task, enqueue.key, make_interval(secs => seconds[2]::double precision),
        enqueue.args, enqueue.priority, moment,
        greatest(enqueue.run_at, moment + make_interval(secs => greatest(seconds[1], 0)::double precision), moment),
        coalesce(
            enqueue.max_attempts,
            (SELECT q.max_attempts FROM /*schema.*/queue AS q WHERE q.name = enqueue.queue),
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_attempts'),
            3
        ),
        coalesce(
            (SELECT (s.value #>> '{}')::smallint FROM /*schema.*/setting AS s WHERE s.name = 'max_losses'),
            3
        ),
        make_interval(secs => seconds[3]::double precision), enqueue.target, nullif(meta, '{}'),
        coalesce(enqueue.held, false)
    )
    RETURNING j.id INTO new_id;

    IF key IS NOT NULL THEN
        UPDATE /*schema.*/job_key AS k SET job_id = new_id
        WHERE k.task = ANY (ARRAY[enqueue.task]) AND k.key = ANY (ARRAY[enqueue.key]);
    END IF;

    -- A full NOTIFY queue would refuse the commit; without a wakeup, polls find the job.
    IF pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify(rtrim('/*schema.*/', '.') || '_wakeup', queue);
    END IF;
    RETURN new_id;
END
$$;

REVOKE ALL ON FUNCTION /*schema.*/enqueue FROM PUBLIC;
