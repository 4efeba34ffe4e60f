"""Bugs of jobs: keys and acknowledgements, counts and caps, cancels and limits."""

from __future__ import annotations

from proof.mutations import patches, runs
from proof.mutations.bug import Bug, Edit

_WRITTEN = """), holder AS (
    INSERT INTO /*schema.*/job_key AS k (task, key, job_id)"""
_WRITES_AGAIN = """DO UPDATE SET
        hits = least(k.hits, 2147483646) + 1,
        job_id = CASE
            WHEN k.expires_at <= coalesce($17::timestamptz, clock_timestamp()) THEN excluded.job_id
            ELSE k.job_id
        END,
        expires_at = CASE
            WHEN k.expires_at <= coalesce($17, clock_timestamp()) THEN NULL
            ELSE k.expires_at
        END
    RETURNING k.task, k.key, k.job_id
"""
_READS_BACK = """DO NOTHING
    RETURNING k.task, k.key, k.job_id
), holder AS MATERIALIZED (
    SELECT w.task, w.key, w.job_id FROM written AS w
    UNION ALL
    SELECT k.task, k.key, k.job_id
    FROM asked AS a
    JOIN /*schema.*/job_key AS k ON k.task = a.task AND k.key = a.key
"""
_RUNNING = "WHERE j.state = 'running' AND j.limited AND"

OF_JOBS = (
    Bug(
        "key-taken-twice",
        "R17: a second enqueue of a living key is a no-op",
        runs.LEASES,
        "I10",
        (Edit("enqueue_keyed", "ELSE k.job_id", "ELSE excluded.job_id"),),
        caught_by="tests/conformance/test_keys.py",
    ),
    Bug(
        "key-confirmed-by-reading",
        "rule 11: a keyed enqueue writes on its way to an answer, also when the key is taken",
        runs.CANCELLED,
        "I1",
        (
            Edit("enqueue_keyed", _WRITTEN, _WRITTEN.replace("holder", "written")),
            Edit("enqueue_keyed", _WRITES_AGAIN, _READS_BACK),
            # Without a new job there is no wakeup: a notification would make the transaction write.
            Edit(
                "enqueue_keyed",
                "WHERE pg_notification_queue_usage() < 0.5",
                "WHERE pg_notification_queue_usage() < 0.5 AND EXISTS (SELECT FROM written)",
            ),
        ),
    ),
    Bug(
        "cancelled-wait-taken-as-success",
        "rule 11: a commit that stopped waiting for its standby is unknown, not done",
        runs.CANCELLED,
        "I1",
        patch=patches.take_a_cancelled_wait_as_success,
        caught_by="tests/connections/test_standby.py",
    ),
    Bug(
        "losses-not-counted",
        "rule 8: losses are counted at rescue, so poison ends",
        runs.LEASES,
        "I9",
        (Edit("rescue", "worker_losses = e.worker_losses_now, deaths = e.deaths_now,", ""),),
        caught_by="tests/conformance/test_rescue.py",
    ),
    Bug(
        "one-loss-too-many",
        "rule 8: a job is at its cap with the last loss that it may have, not after it",
        runs.CAPS,
        "I9",
        (
            Edit("settle", "j.losses + 1 >= j.max_losses", "j.losses + 1 > j.max_losses"),
            Edit("settle", "j.worker_losses + 1 >= $19", "j.worker_losses + 1 > $19"),
            Edit("rescue", "c.worker_losses_now >= $8", "c.worker_losses_now > $8"),
        ),
        caught_by="tests/conformance/test_losses.py",
    ),
    Bug(
        "attempt-kept-on-release",
        "rule 8: release and snooze give the attempt back",
        runs.DEPLOYS,
        "I9",
        (
            Edit(
                "settle",
                "attempt = CASE WHEN e.charged THEN j.attempt ELSE j.attempt - 1 END,",
                "attempt = j.attempt,",
            ),
        ),
        caught_by="tests/conformance/test_settle.py",
    ),
    Bug(
        "cancel-forgotten-on-failure",
        "rule 15: every other ending of a cancelled job ends as cancelled",
        runs.LEASES,
        "I2",
        (
            Edit(
                "settle", "WHEN j.cancel_requested THEN 'cancelled'", "WHEN false THEN 'cancelled'"
            ),
        ),
        caught_by="tests/races/test_cancelling.py",
    ),
    Bug(
        "effects-kept-without-the-lease",
        "rule 10: what is written in the job's transaction is rolled back where the lease is lost",
        runs.PAUSES,
        "I4",
        patch=patches.commit_whether_or_not_it_settled,
    ),
    Bug(
        "limit-counts-only-unexpired",
        "rule 16: an expired lease that is locked may be revived and still counts",
        runs.LIMITS,
        "I3",
        (
            Edit(
                "claim_limited",
                _RUNNING,
                "WHERE j.state = 'running' AND j.limited\n"
                "            AND j.lease_expires_at > coalesce($11, statement_timestamp()) AND",
            ),
        ),
        caught_by="tests/races/test_limits.py",
    ),
    Bug(
        "limit-without-adoption",
        "rule 16: what was claimed while the limit was being set counts too",
        runs.LIMITS,
        "I3",
        (Edit("mark_limited", "SET limited = true", "SET limited = false"),),
        caught_by="tests/races/test_limits.py",
    ),
)
