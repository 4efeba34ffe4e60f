"""The rules of time against the oracle: a twentieth here, all by `just prove schedules oracle`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from proof.schedules.oracle import EXPRESSIONS, SHORT, Walk, check, some
from proof.schedules.plain_cron import plain
from proof.schedules.transitions import transitions
from tenure._model.schedule import Timing
from tenure._rules.timing import check as check_timing

if TYPE_CHECKING:
    from proof.schedules.transitions import Transition

PARTS = 4


@pytest.fixture(scope="module")
def changes() -> list[Transition]:
    return transitions()


@pytest.mark.parametrize("part", range(PARTS))
def test_around_changes_of_the_clock_the_rules_agree_with_the_oracle(
    part: int, changes: list[Transition], request: pytest.FixtureRequest
) -> None:
    """Shows R25."""
    seed = request.config.getoption("randomly_seed", 0) % SHORT
    assert len(changes) > 900
    assert check(some(changes, seed)[part::PARTS], EXPRESSIONS, seed=seed) == []


def test_every_expression_of_the_oracle_is_one_that_is_accepted() -> None:
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS) >= 50
    for expression in EXPRESSIONS:
        check_timing(Timing(cron=expression))


def test_the_oracle_finds_what_cronsim_alone_leaves_out(changes: list[Transition]) -> None:
    """Were the rules cronsim's own walk, a change by half an hour would show."""
    at = datetime(2026, 4, 4, 15, tzinfo=UTC)
    [change] = [one for one in changes if one.at == at and one.zone.startswith("Aus")]
    walk = Walk(change)
    wanted = walk.ticks(plain("*/15 2 * * *"))
    simulated = CronSim("*/15 2 * * *", walk.begin.astimezone(ZoneInfo(change.zone)))
    given = [next(simulated).astimezone(UTC) for _ in wanted]
    assert given != wanted
