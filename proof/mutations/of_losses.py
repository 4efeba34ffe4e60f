"""Bugs of losses: which counter an end raises, who is suspect, and what the watch relies on."""

from __future__ import annotations

from proof.mutations import patches, runs
from proof.mutations.bug import Bug, Edit

_COUNTERS = "tests/conformance/test_loss_counters.py"
_AFTERMATH = "tests/worker/test_aftermath.py"
_OWN = "(e.loss IS NOT DISTINCT FROM 'own')"
_SUSPECT = "suspect = coalesce(e.loss IN ('own', 'shared'), false) OR"
_RENEWALS = "    renewals = greatest(j.renewals, 0),\n"

OF_LOSSES = (
    Bug(
        "loss-charges-the-attempt",
        "rule 8: a loss gives the attempt back",
        runs.SPOT,
        "I9",
        (Edit("rescue", "attempt = j.attempt - 1, worker_losses", "worker_losses"),),
        caught_by=_COUNTERS,
    ),
    Bug(
        "many-deaths-are-forgotten",
        "rule 8: a job with many deaths runs alone, although its cursor moves",
        runs.SPOT,
        "I9",
        (Edit("claim", "q.deaths < $13::smallint", "coalesce($13::smallint, 1) > 0"),),
        caught_by=_COUNTERS,
    ),
    Bug(
        "shared-death-counts-as-own",
        "rule 8: only the death of a job's own process is its loss",
        runs.INNOCENTS,
        "I9",
        (
            Edit("settle", _OWN, "coalesce(e.loss IN ('own', 'shared'), false)"),
            Edit("settle", "WHEN a.loss = 'own' AND", "WHEN a.loss IN ('own', 'shared') AND"),
        ),
        caught_by=_COUNTERS,
    ),
    Bug(
        "unknown-loss-counted",
        "rule 8: lost with its worker at -1, a claim counts a death only",
        runs.COUNTERS,
        "I9",
        (Edit("rescue", "(e.renewals >= 0 AND NOT l.excused)", "(NOT l.excused)"),),
        caught_by=_COUNTERS,
    ),
    Bug(
        "waiting-renewed-as-begun",
        "rule 8: a renewal of a job that waits does not say that it began",
        runs.COUNTERS,
        "I9",
        (
            Edit(
                "renew",
                "CASE WHEN h.began THEN greatest(j.renewals, 0) + 1 ELSE j.renewals END",
                "CASE WHEN h.began IS NOT NULL THEN greatest(j.renewals, 0) + 1 END",
            ),
        ),
        caught_by=_COUNTERS,
    ),
    Bug(
        "neighbors-not-suspect",
        "rule 8: the death of a shared process makes its begun jobs suspects at once",
        runs.INNOCENTS,
        "I9",
        (Edit("settle", _SUSPECT, "suspect = coalesce(e.loss = 'own', false) OR"),),
        caught_by=_COUNTERS,
    ),
    Bug(
        "suspicion-ends-with-progress",
        "rule 8: a moved cursor does not end suspicion",
        runs.COUNTERS,
        "I9",
        (Edit("progress", _RENEWALS, f"    suspect = j.suspect AND NOT h.moved,\n{_RENEWALS}"),),
        caught_by=_COUNTERS,
    ),
    Bug(
        "progress-resets-deaths",
        "rule 8: deaths is the sum per life, and is never reset",
        runs.COUNTERS,
        "I6",
        (
            Edit(
                "progress",
                _RENEWALS,
                f"    deaths = CASE WHEN h.moved THEN 0 ELSE j.deaths END,\n{_RENEWALS}",
            ),
        ),
        caught_by=_COUNTERS,
    ),
    Bug(
        "own-leases-rescued",
        "rule 8: in an outage a process never rescues what it has yet to give back",
        runs.COUNTERS,
        "I9",
        (
            Edit(
                "rescue",
                "AND NOT (j.id = ANY ($7::bigint[]) AND j.claimed_by = $6::uuid)",
                "AND NOT (j.id = ANY ($7::bigint[]) AND $6::uuid IS NULL)",
            ),
        ),
        caught_by=_COUNTERS,
    ),
    Bug(
        "begun-without-confirmation",
        'rule 8: a job with on_loss="fail" is confirmed before every start',
        runs.ON_LOSS,
        "I9",
        patch=patches.begin_without_confirmation,
        caught_by="tests/services/test_confirmer.py",
    ),
    Bug(
        "crash-after-return-forgiven",
        "rule 8: what ended within a second of an unexplained death is suspect too",
        runs.INNOCENTS,
        "I6",
        patch=patches.forgive_what_has_returned,
        caught_by=_AFTERMATH,
    ),
    Bug(
        "outage-taken-for-a-standstill",
        "rule 8: past a deadline with a service thread that has heartbeats, jobs are given back",
        runs.OUTAGES,
        "I9",
        patch=patches.ignore_the_beat_at_a_deadline,
        caught_by=_AFTERMATH,
    ),
    Bug(
        "claims-arrive-on-the-handlers-loop",
        "rule 7: claims arrive on the service thread",
        runs.ARRIVING,
        "I3",
        patch=patches.claim_on_the_handlers_loop,
        caught_by="tests/worker/test_claims_on_service_thread.py",
    ),
    Bug(
        "silent-service-thread-ignored",
        "rule 17: the parent kills a child whose service thread has not beaten",
        runs.FROZEN,
        "I6",
        patch=patches.ignore_a_silent_service_thread,
        caught_by="tests/worker/test_pulse.py",
    ),
    Bug(
        "log-waits-for-its-reader",
        "rule 17: nothing on the parent waits for a reader of its log",
        runs.FROZEN,
        "I5",
        patch=patches.wait_for_the_reader_of_the_log,
        caught_by="tests/worker/test_unread_log.py",
    ),
    Bug(
        "http-renewals-end-before-handlers",
        "rule 7: renewals continue until the lease is settled, also over HTTP",
        runs.HTTP_STOPS,
        "I3",
        patch=patches.stop_renewing_before_handlers_end,
        caught_by="tests/server/test_worker_stop.py",
    ),
)
