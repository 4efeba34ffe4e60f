"""What the charts of the Overview are drawn from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenure.server.dashboard import charts as charting

if TYPE_CHECKING:
    from support.serving import Service


def test_a_step_of_which_nothing_is_counted_yet_is_left_empty(service: Service) -> None:
    """It would look like an outage."""
    stats = service.admin.stats()
    charts = charting._charts(replace(stats, counted_until=stats.steps[-1].since), {})
    for line in charts.throughput:
        assert line.values[-1] is None
        assert None not in line.values[:-1]
    unfolded = charting._charts(replace(stats, counted_until=None), {})
    assert all(None not in line.values for line in unfolded.throughput)
