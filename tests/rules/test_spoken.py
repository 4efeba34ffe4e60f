"""Timings in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tenure._model.schedule import Timing
from tenure._rules.timing import describe_timing


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Timing(cron="30 2 * * *"), "At 02:30 every day"),
        (Timing(cron="@hourly"), "At the start of every hour"),
        (Timing(every=timedelta(minutes=1)), "Every minute"),
        (Timing(every=timedelta(minutes=5)), "Every 5 minutes"),
        (Timing(every=timedelta(hours=1, minutes=30)), "Every 1 hour 30 minutes"),
        (Timing(every=timedelta(seconds=1.5)), "Every 1.5 seconds"),
        (Timing(every=timedelta(days=2, seconds=1)), "Every 2 days 1 second"),
        (Timing(at=datetime(2030, 1, 1, tzinfo=UTC)), "Once"),
    ],
)
def test_timing_is_described_in_words(timing: Timing, words: str) -> None:
    assert describe_timing(timing) == words


@pytest.mark.parametrize("cron", ["0 0 L * *", "0 0 LW * *", "0 0 * * 5L", "0 0 * * 1#2"])
def test_partial_knowledge_is_shown(cron: str) -> None:
    assert describe_timing(Timing(cron=cron))
