"""The catalogue: what each bug changes, which promise it breaks, and what must notice it."""

from __future__ import annotations

from dataclasses import dataclass

from tenure._store.postgres import statements


@dataclass(frozen=True)
class Edit:
    """One change to one statement's text; the old text must be there."""

    statement: str
    old: str
    new: str


@dataclass(frozen=True)
class Bug:
    """A plausible mistake; `breaks` is the rule it forgets, `caught_by` the suite that fails."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    caught_by: str


_NAMED = "j.token = a.token AND "
_OWNER = " AND j.claimed_by = a.claimed_by"

BUGS = (
    Bug(
        "settle-without-token",
        "rule 1: a write that needs ownership names the whole lease",
        (Edit("settle", _NAMED, ""), Edit("complete", _NAMED, "")),
        "tests/conformance/test_settle_again.py",
    ),
    Bug(
        "renew-without-owner",
        "rule 1: the owner is part of the lease's name",
        (Edit("renew", _OWNER, ""),),
        "tests/conformance/test_renew.py",
    ),
    Bug(
        "renew-without-time-guard",
        "rule 2: a renewal needs an unexpired lease",
        (
            Edit(
                "renew",
                "WHERE j.lease_expires_at > coalesce($5::timestamptz, clock_timestamp())",
                "WHERE coalesce($5::timestamptz, clock_timestamp()) IS NOT NULL",
            ),
        ),
        "tests/conformance/test_renew.py",
    ),
    Bug(
        "rescue-without-expiry-check",
        "rule 9: the expiry is judged in the statement that takes the lease",
        (
            Edit(
                "rescue",
                "AND j.lease_expires_at <= coalesce($5::timestamptz, statement_timestamp())",
                "AND coalesce($5::timestamptz, statement_timestamp()) IS NOT NULL",
            ),
        ),
        "tests/conformance/test_rescue.py",
    ),
    Bug(
        "token-reset-on-retry",
        "I8: a token is never reset, so an old lease never names a new life",
        (Edit("retry", "r.id, r.token + 1,", "r.id, 0,"),),
        "tests/conformance/test_dead_letters.py",
    ),
    Bug(
        "claim-without-lock",
        "rule 13: a claim locks what it takes; two never take the same",
        (Edit("claim", "LIMIT $7::integer\n        FOR UPDATE SKIP LOCKED", "LIMIT $7::integer"),),
        "tests/races/test_claims.py",
    ),
    Bug(
        "cancel-forgotten-on-failure",
        "rule 15: every other ending of a cancelled job ends as cancelled",
        (
            Edit(
                "settle", "WHEN j.cancel_requested THEN 'cancelled'", "WHEN false THEN 'cancelled'"
            ),
        ),
        "tests/races/test_cancelling.py",
    ),
    Bug(
        "limit-counts-only-unexpired",
        "rule 16: an expired lease that is locked may be revived and still counts",
        (
            Edit(
                "claim_limited",
                "WHERE j.state = 'running' AND j.limited AND",
                "WHERE j.state = 'running' AND j.limited\n"
                "            AND j.lease_expires_at > coalesce($10, statement_timestamp()) AND",
            ),
        ),
        "tests/races/test_limits.py",
    ),
    Bug(
        "key-taken-twice",
        "R17: a second enqueue of a living key is a no-op",
        (Edit("enqueue_keyed", "ELSE k.job_id", "ELSE excluded.job_id"),),
        "tests/conformance/test_keys.py",
    ),
    Bug(
        "losses-not-counted",
        "rule 8: losses are counted at rescue, so poison ends",
        (Edit("rescue", "token = j.token + 1, losses = e.losses_now,", "token = j.token + 1,"),),
        "tests/conformance/test_rescue.py",
    ),
    Bug(
        "progress-without-time-guard",
        "rule 2: progress needs an unexpired lease, judged again after a lock wait",
        (
            Edit(
                "progress",
                "WHERE l.lease_expires_at > coalesce($9::timestamptz, clock_timestamp())",
                "WHERE coalesce($9::timestamptz, clock_timestamp()) IS NOT NULL",
            ),
        ),
        "tests/conformance/test_progress.py",
    ),
    Bug(
        "limit-without-adoption",
        "rule 16: what was claimed while the limit was being set counts too",
        (Edit("adopt", "SET limited = true", "SET limited = false"),),
        "tests/races/test_limits.py",
    ),
    Bug(
        "tick-fires-again",
        "I7: a tick that is recorded makes nothing more",
        (Edit("fire", "WHERE $8::boolean AND t.job_id IS NULL", "WHERE $8::boolean IS NOT NULL"),),
        "tests/conformance/test_firing.py",
    ),
    Bug(
        "due-without-lock",
        "R26: a firing locks what it fires; another passes it over",
        (Edit("due", "FOR NO KEY UPDATE SKIP LOCKED", ""),),
        "tests/races/test_firing.py",
    ),
    Bug(
        "due-waits",
        "R27: a schedule that another one is at is passed over, not waited for",
        (Edit("due", "FOR NO KEY UPDATE SKIP LOCKED", "FOR NO KEY UPDATE"),),
        "tests/races/test_firing.py",
    ),
    Bug(
        "tick-without-job",
        "R26: a tick and its job are one transaction, and one statement",
        (
            Edit(
                "fire",
                "WHERE a.made",
                "WHERE a.made AND a.reason IS NULL",
            ),
        ),
        "tests/races/test_schedulers_killed.py",
    ),
)


def apply(name: str) -> Bug:
    """Let every store made from now on in this process have this bug."""
    [bug] = [bug for bug in BUGS if bug.name == name]
    sound = statements.parse

    def mutated(name: str, text: str, schema: str) -> statements.Statement:
        for edit in bug.edits:
            if edit.statement == name:
                if edit.old not in text:
                    raise AssertionError(f"{bug.name}: {name}.sql no longer has {edit.old!r}")
                text = text.replace(edit.old, edit.new)
        return sound(name, text, schema)

    statements.parse = mutated
    statements.statements.cache_clear()
    return bug
