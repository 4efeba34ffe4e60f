"""Bugs of leases: whose they are, until when, and under which token."""

from __future__ import annotations

from proof.mutations import patches, runs
from proof.mutations.bug import Bug, Edit

_TOKEN = "j.token = a.token AND "  # noqa: S105 - a guard, not a secret
_OWNER = " AND j.claimed_by = a.claimed_by"
_WHOLE = "AND j.token = a.token AND j.claimed_by = a.claimed_by"
_TIMELINE = """greatest(
        j.token + 1,
        /*include timeline*/
        << 40
    )"""
_UNEXPIRED = "WHERE j.lease_expires_at > coalesce($6::timestamptz, clock_timestamp())"
_UNEXPIRED_STILL = " AND j.lease_expires_at > coalesce($6, clock_timestamp())"

OF_LEASES = (
    Bug(
        "settle-without-token",
        "rule 1: a write that needs ownership names the whole lease",
        runs.PAUSES,
        "I2",
        (Edit("settle", _TOKEN, ""), Edit("complete", _TOKEN, "")),
        caught_by="tests/conformance/test_settle_again.py",
    ),
    Bug(
        "complete-by-id-alone",
        "rules 1 and 10: a completion, also in the job's transaction, names the whole lease",
        runs.LEASES,
        "I2",
        (Edit("complete", _WHOLE, "AND a.claimed_by IS NOT NULL"), Edit("settle", _WHOLE, "")),
        caught_by="tests/conformance/test_settle_again.py",
    ),
    Bug(
        "renew-without-owner",
        "rule 1: the owner is part of the lease's name",
        runs.OWNERS,
        "I2",
        (Edit("renew", _OWNER, ""),),
        caught_by="tests/conformance/test_renew.py",
    ),
    Bug(
        "renew-without-time-guard",
        "rule 2: a renewal needs an unexpired lease",
        runs.LEASES,
        "I3",
        (
            Edit(
                "renew",
                _UNEXPIRED,
                "WHERE coalesce($6::timestamptz, clock_timestamp()) IS NOT NULL",
            ),
            Edit("renew", _UNEXPIRED_STILL, ""),
        ),
        caught_by="tests/conformance/test_renew.py",
    ),
    Bug(
        "renewal-waits-and-judges-before",
        "rules 3 and 5: a renewal waits for no lock, and no expiry is judged before a wait",
        runs.RESCUING,
        "I3",
        (
            Edit("renew", _UNEXPIRED, _UNEXPIRED.replace("clock_", "statement_")),
            Edit("renew", _UNEXPIRED_STILL, ""),
            Edit("renew", "FOR NO KEY UPDATE OF j SKIP LOCKED", "FOR NO KEY UPDATE OF j"),
        ),
        caught_by="tests/races/test_rescuing.py",
    ),
    Bug(
        "progress-without-time-guard",
        "rule 2: progress needs an unexpired lease, judged again after a lock wait",
        runs.REPORTS,
        "I3",
        (
            Edit(
                "progress",
                "WHERE l.lease_expires_at > coalesce($9::timestamptz, clock_timestamp())",
                "WHERE coalesce($9::timestamptz, clock_timestamp()) IS NOT NULL",
            ),
        ),
        caught_by="tests/conformance/test_progress.py",
    ),
    Bug(
        "rescue-without-expiry-check",
        "rule 9: the expiry is judged in the statement that takes the lease",
        runs.LEASES,
        "I3",
        (
            Edit(
                "rescue",
                "AND j.lease_expires_at <= coalesce($5::timestamptz, statement_timestamp())",
                "AND coalesce($5::timestamptz, statement_timestamp()) IS NOT NULL",
            ),
        ),
        caught_by="tests/conformance/test_rescue.py",
    ),
    Bug(
        "rescue-without-token",
        "rule 9: a rescue raises the token, so that the old holder's lease names nothing",
        runs.LEASES,
        "I8",
        (
            Edit(
                "rescue",
                "state = 'queued', returned = true, token = j.token + 1,",
                "state = 'queued', returned = true,",
            ),
        ),
    ),
    Bug(
        "sweep-only-above-the-floor",
        "rule 9: a floor is a hint, and once per lease a worker sweeps from zero",
        runs.LEASES,
        "I6",
        patch=patches.sweep_only_above_the_floor,
    ),
    Bug(
        "token-reset-on-retry",
        "I8: a token is never reset, so an old lease never names a new life",
        runs.REVIVALS,
        "I8",
        (Edit("retry", "r.id, r.token + 1,", "r.id, 0,"),),
        caught_by="tests/conformance/test_dead_letters.py",
    ),
    Bug(
        "token-without-timeline",
        "the token begins with the timeline, so that no failover hands it out again",
        runs.ASYNCHRONOUS,
        "I8",
        (
            Edit("claim", _TIMELINE, "j.token + 1"),
            Edit("claim_limited", _TIMELINE, "j.token + 1"),
        ),
    ),
    Bug(
        "claim-without-lock",
        "rule 13: a claim locks what it takes, and two never take the same",
        runs.CLAIMS,
        "I8",
        (Edit("claim", "LIMIT $7::integer\n        FOR UPDATE SKIP LOCKED", "LIMIT $7::integer"),),
        caught_by="tests/races/test_claims.py",
    ),
    Bug(
        "renewals-stopped-by-draining",
        "rules 7 and 14: renewals continue until the lease is settled, through draining too",
        runs.DRAINING,
        "I9",
        patch=patches.stop_renewing_to_drain,
        caught_by="tests/worker/test_draining.py",
    ),
    Bug(
        "trusted-without-an-answer",
        "rule 6: only an answer that grants the renewal moves the deadline",
        runs.PARTITIONS,
        "I5",
        patch=patches.trust_without_an_answer,
    ),
    Bug(
        "no-margin",
        "rule 6: a holder stops before the lease's end, by a margin and the time that it takes",
        runs.PARTITIONS,
        "I5",
        patch=patches.leave_out_the_margin,
    ),
)
