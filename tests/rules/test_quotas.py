"""Quotas: which are valid, and how fast a rate limit lets requests pass."""

from __future__ import annotations

import math

import pytest

from tenure._rules.access import like_patterns
from tenure._rules.quotas import QUEUE_QUOTAS, TOKEN_QUOTAS, check_quotas
from tenure.errors import InvalidValue
from tenure.server.quotas import RateLimit, narrower


def test_quotas_are_stored_in_one_order() -> None:
    given = {"sessions": 5, "live_jobs": 0, "enqueue_rate": 0.5}
    assert list(check_quotas(given, TOKEN_QUOTAS)) == ["live_jobs", "enqueue_rate", "sessions"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("none", 1), ("sessions", 1), ("live_jobs", -1), ("live_jobs", True), ("live_jobs", 1e99)],
)
def test_invalid_quotas_of_a_queue_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidValue, match="quota"):
        check_quotas({name: value}, QUEUE_QUOTAS)


def test_not_a_number_is_refused() -> None:
    with pytest.raises(InvalidValue, match="must be from 0"):
        check_quotas({"live_jobs": math.nan}, QUEUE_QUOTAS)


def test_a_child_gets_the_narrower_quota() -> None:
    assert narrower({"live_jobs": 5, "sessions": 1}, {"live_jobs": 3, "key_for": 9}) == {
        "live_jobs": 3,
        "sessions": 1,
        "key_for": 9,
    }


def test_a_rate_limit_holds_over_time() -> None:
    limit, now, passed = RateLimit(10, 0.0), 0.0, 0
    while now < 10:
        if not limit.wait(now):
            limit.spend(1)
            passed += 1
        now += 0.01
    assert 100 <= passed <= 111


def test_a_large_batch_passes_and_is_waited_for() -> None:
    limit = RateLimit(10, 0.0)
    assert limit.wait(0.0) == 0
    limit.spend(1000)
    assert limit.wait(0.0) == pytest.approx(99.1)
    assert limit.wait(99.2) == 0


def test_rate_of_zero_lets_nothing_pass() -> None:
    assert RateLimit(0, 0.0).wait(100.0) == math.inf


def test_patterns_for_statements_match_no_more_than_the_grant() -> None:
    assert like_patterns(["a_b.*", "mail"]) == ["a\\_b.%", "mail"]
    assert like_patterns(["mail", "*"]) is None
    assert like_patterns(None) is None
