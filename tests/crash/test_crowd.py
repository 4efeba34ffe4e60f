"""Many at once."""

from __future__ import annotations

from proof.crowd import suite as crowd


def test_a_thousand_jobs_run_at_once_and_no_lease_is_lost() -> None:
    """Ten workers of a hundred slots; `just prove crowd` has fifty, for five minutes. Shows R30."""
    assert crowd.main(["running", "--short"]) == 0


def test_one_job_among_many_idle_workers_is_run_once_and_soon() -> None:
    """Sixty workers; `just prove crowd idle` has two hundred. Shows R1, R30."""
    assert crowd.main(["idle", "--short"]) == 0


def test_many_leases_that_end_together_are_rescued_within_a_lease() -> None:
    """A thousand leases; `just prove crowd expiring` has ten thousand. Shows R6."""
    assert crowd.main(["expiring", "--short"]) == 0
