"""First claims where dead entries lie in front of due jobs, and nothing may remove them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from support.horizon import add_dead, pinned
from support.race_helpers import claim
from support.store import SECOND, A, lanes
from tenure.config import DEFAULTS
from tenure.errors import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.store import Database
    from tests.services.bench import Bench

pytestmark = pytest.mark.usefixtures("rests")
# To walk over as many takes about thirty times as long as a claim has.
DEAD = 50_000
BRIEF = timedelta(milliseconds=1)


@pytest.fixture
def dead(db: Database) -> Iterator[None]:
    with pinned(db.url):
        add_dead(db.url, "default", DEAD, db.clock.now - 3600 * SECOND)
        yield


@pytest.mark.usefixtures("dead")
async def test_a_claim_that_takes_longer_than_it_may_is_a_timeout(db: Database) -> None:
    hasty = db.store.leases.claim(lanes("default"), count=1, worker=A, within=BRIEF)
    with pytest.raises(QueryFailed) as refused:
        await db.run(hasty)
    assert refused.value.is_timeout
    assert (await db.run(claim(db.store, worker=A))).found == 0


@pytest.mark.usefixtures("dead")
async def test_a_new_worker_gets_recent_jobs_at_once_and_older_ones_by_a_scan(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """A transaction has been open for hours: every claim from zero would be canceled."""
    bench.defaults = replace(DEFAULTS, first_claim=BRIEF)
    bench.task()
    claimer, link = bench.claimer(bench.dispatcher()), bench.link("claimer 2")
    nudges: list[None] = []
    bench.events.backlog.append(lambda: nudges.append(None))
    [old] = await bench.enqueue()
    bench.db.clock.advance(600 * SECOND)
    [new] = await bench.enqueue()

    await claimer.tick()
    assert [one.held.job.id for one in bench.loop_way.started] == [new]
    assert nudges, "the scan begins now"
    assert await claimer.scan(link) == 1
    assert [one.held.job.id for one in bench.loop_way.started] == [new, old]
    assert claimer.until_scan > 0.1
    warnings = [record.getMessage() for record in caplog.records]
    assert ["too many dead rows" in each for each in warnings] == [True]


@pytest.mark.usefixtures("dead")
async def test_a_worker_of_every_queue_learns_their_names_by_the_scan(bench: Bench) -> None:
    bench.defaults = replace(DEFAULTS, first_claim=BRIEF)
    bench.task()
    claimer, link = bench.claimer(bench.dispatcher(), "*"), bench.link("claimer 2")
    await bench.enqueue()

    await claimer.tick()
    assert bench.loop_way.started == []
    await claimer.scan(link)
    await claimer.tick()
    assert len(bench.loop_way.started) == 1


@pytest.mark.usefixtures("dead")
async def test_a_worker_of_every_queue_learns_a_name_by_a_wakeup(bench: Bench) -> None:
    bench.defaults = replace(DEFAULTS, first_claim=BRIEF)
    bench.task()
    claimer = bench.claimer(bench.dispatcher(), "*")
    await bench.enqueue()
    claimer.wake("default")

    await claimer.tick()
    assert len(bench.loop_way.started) == 1


async def test_while_jobs_are_behind_a_backlog_does_not_keep_the_scan_away(bench: Bench) -> None:
    bench.task()
    claimer, link = bench.claimer(bench.dispatcher()), bench.link("claimer 2")
    await bench.enqueue()
    claimer._lanes.skip(claimer._lanes.next_lanes(), bench.db.clock.now + 120 * SECOND)
    claimer._filled, claimer._scan_at = True, bench.boot.now
    assert await claimer.claim_again(link) == 0
    assert claimer.until_scan < 0.1
    assert await claimer.scan(link) == 1
