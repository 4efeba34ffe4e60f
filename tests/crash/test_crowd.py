"""Many workers at once."""

from __future__ import annotations

from proof import crowd


def test_a_thousand_jobs_run_at_once_and_no_lease_is_lost() -> None:
    """Ten workers of a hundred slots; `just prove crowd` has fifty, for five minutes. Shows R30."""
    assert crowd.main(["--short", "--seconds=12"]) == 0
