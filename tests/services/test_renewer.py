"""Renewals: when they are sent, what their answers do, and how long they continue."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.race_helpers import BY
from support.store import SECOND
from tenure._model.outcome import Succeeded
from tenure._runtime.held_leases import StopReason
from tenure._runtime.lease_board import Phase
from tenure._runtime.renewer import deadline
from tenure._store.postgres.service_connection import PostgresServiceConnection
from tenure.errors import LeaseLost, StoreError, Unreachable

if TYPE_CHECKING:
    from tests.services.bench import Bench


async def expiry(bench: Bench) -> Any:
    """When the one lease that there is ends, in seconds from now on the database's clock."""
    [found] = await bench.db.fetch("SELECT lease_expires_at AS at FROM tenure.job")
    return (found["at"] - bench.db.clock.now).total_seconds()


async def test_a_lease_is_renewed_at_a_third_and_not_before(bench: Bench) -> None:
    """A little before, so that leases of one claim share a statement. Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    renewer = bench.renewer()

    bench.advance(6.9)
    await renewer.tick()
    assert await expiry(bench) == pytest.approx(23.1)

    bench.advance(3.1)
    await renewer.tick()
    assert await expiry(bench) == 30
    assert (held.renew_at, bench.boot.now) == (1020.0, 1010.0)


async def test_trust_is_counted_from_before_the_renewal_was_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow round trip shortens the trust, never stretches it. Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    renewer = bench.renewer()
    bench.advance(10)
    link = bench.links[-1]
    run = link.run

    async def slowly(op: Any) -> Any:
        answer = await run(op)
        bench.boot.advance(4)
        return answer

    monkeypatch.setattr(link, "run", slowly)
    await renewer.tick()

    # 30 s of lease, less 3 s of margin and 2 s to stop, from 1010 on; not from 1014.
    assert (held.trusted_until, held.must_end_at) == (1035.0, 1037.0)


async def test_a_busy_row_is_tried_again_and_stops_nothing(bench: Bench) -> None:
    """Another statement settles or guards it just now. Shows R3."""
    bench.task()
    dispatcher = bench.dispatcher()
    [held] = await bench.start(dispatcher)
    renewer = bench.renewer()
    bench.advance(10)
    operator = await bench.db.caller("operator")
    async with operator.transaction():
        await operator.connection.execute("SELECT FROM tenure.job FOR UPDATE")
        await renewer.tick()
        assert (held.stopping, held.lease_state.lost, held.sent_at) == (None, False, 1000.0)
    await renewer.tick()

    assert held.sent_at == 1010.0


async def test_lost_lease_stops_its_handler_and_is_not_renewed_again(bench: Bench) -> None:
    """Its next call is refused before it is sent. Shows R4."""
    bench.task()
    kept, lost = await bench.start(bench.dispatcher(), 2)
    await bench.db.run(bench.db.store.job_commands.revoke([lost.job.id], BY))
    renewer = bench.renewer()
    bench.advance(10)
    await renewer.tick()

    assert (kept.stopping, lost.stopping) == (None, StopReason.LEASE)
    assert [running.requested for running in bench.loop_way.started] == [[], [StopReason.LEASE]]
    with pytest.raises(LeaseLost):
        lost.lease_state.check(lost.job.id)
    runs = bench.links[-1].runs
    kept.extend(bench.boot.now)
    bench.boot.advance(5)
    await renewer.tick()
    assert bench.links[-1].runs == runs


@pytest.mark.parametrize("phase", [Phase.UNSTARTED, Phase.STARTED, Phase.ENDED, Phase.TIMED_OUT])
async def test_a_lease_is_renewed_until_it_is_settled(bench: Bench, phase: Phase) -> None:
    """Waiting for a slot, running, ended and on its way to the database, out of time: the answer
    to a settle, not its sending, ends the lease. Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.mark(phase)
    renewer = bench.renewer()
    for _ in range(5):
        bench.advance(10)
        await renewer.tick()
        assert await expiry(bench) == 30

    assert held.stopping is None


async def test_lease_settled_during_its_renewal_is_not_a_loss(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Two actors: the settle and the renewal of one lease cross."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    bench.loop_way.started[0].end(Succeeded())
    renewer = bench.renewer()
    bench.advance(10)
    # Settled in the database; the holding is still there when the renewal is sent.
    bench.held_leases.drop(held)
    bench.held_leases.add(held)
    await bench.settler.tick()
    bench.held_leases.add(held)
    await renewer.tick()

    assert held.stopping is None
    assert "lost" not in caplog.text


async def test_what_is_settled_is_not_renewed(bench: Bench) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    held.lease_state.settled = True
    bench.advance(20)
    await bench.renewer().tick()

    assert bench.links[-1].runs == 0


async def test_a_renewal_that_cannot_be_sent_is_an_error_and_stops_nothing_by_itself(
    bench: Bench,
) -> None:
    """The watcher stops what runs out of trust; until then it is tried again. Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    renewer = bench.renewer()
    link = bench.links[-1]
    bench.advance(10)
    link.cut = True
    for _ in range(3):
        with pytest.raises(Unreachable):
            await renewer.tick()
    assert (held.stopping, held.sent_at) == (None, 1000.0)

    link.cut = False
    bench.advance(5)
    await renewer.tick()
    assert held.sent_at == 1015.0


async def test_broken_connection_is_replaced(bench: Bench) -> None:
    """Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    renewer = bench.renewer()
    bench.advance(10)
    await renewer.tick()
    await bench.db.fetch(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'renewer'"
    )
    bench.advance(10)
    with pytest.raises(StoreError, match="broke"):
        await renewer.tick()
    await renewer.tick()

    assert held.sent_at == 1020.0


async def test_a_cancel_request_comes_with_a_renewal(bench: Bench) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    await bench.db.run(bench.db.store.job_commands.cancel([held.job.id], BY))
    renewer = bench.renewer()
    assert not held.lease_state.cancel_requested
    bench.advance(10)
    await renewer.tick()

    assert (held.lease_state.cancel_requested, held.lease_state.lost) == (True, False)


async def test_a_full_batch_is_followed_by_the_rest_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure._runtime.renewer._BATCH", 4)
    bench.task()
    await bench.start(bench.dispatcher(), 6)
    renewer = bench.renewer()
    bench.advance(10)

    assert (await renewer.tick(), await renewer.tick()) == (4, 0)
    assert {held.sent_at for held in bench.held_leases} == {1010.0}


@pytest.mark.parametrize("ttl", [3.1, 4, 6.1])
async def test_it_rests_no_longer_than_until_the_next_lease_is_due(
    bench: Bench, ttl: float
) -> None:
    """Short leases would run out between two looks. Shows R3."""
    bench.task()
    [held] = await bench.start(bench.dispatcher(), lease=timedelta(seconds=ttl))
    renewer = bench.renewer()
    for _ in range(20):
        rest = renewer._next_delay()
        assert 0.1 <= rest <= 1.2
        bench.advance(rest)
        await renewer.tick()
        assert bench.boot.now - held.sent_at <= ttl / 3 + 0.11
        assert bench.boot.now < held.trusted_until - 0.8
    assert bench.links[-1].runs > 5


async def test_locked_due_job_is_tried_again_soon_and_not_forever(
    bench: Bench,
) -> None:
    bench.task()
    [held] = await bench.start(bench.dispatcher())
    bench.advance(12)

    assert bench.renewer()._next_delay() == pytest.approx(0.1)
    held.lease_state.lost = True
    assert bench.renewer()._next_delay() >= 0.8


async def test_a_renewal_hurries_for_the_shortest_lease_that_is_held(bench: Bench) -> None:
    """One that hangs is tried on a new connection while there is trust left. Shows R3."""
    bench.task()
    dispatcher = bench.dispatcher()
    await bench.start(dispatcher)
    [short] = await bench.start(dispatcher, lease=timedelta(seconds=4.2))
    renewer = bench.renewer()
    await renewer.tick()
    assert bench.links[-1]._deadline == timedelta(seconds=0.7)

    bench.held_leases.drop(short)
    await renewer.tick()
    assert bench.links[-1]._deadline == timedelta(seconds=5)


def test_a_renewal_has_a_sixth_of_the_lease_to_be_answered() -> None:
    assert deadline(30 * SECOND) == 5 * SECOND
    assert deadline(timedelta(hours=1)) == 15 * SECOND


async def test_its_connection_is_there_before_the_first_renewal_is_due(bench: Bench) -> None:
    """One that is made when it is needed, on a bad link, could cost the lease. Shows R3."""
    bench.task()
    await bench.start(bench.dispatcher())
    there = (
        "SELECT count(*) AS links FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'renewer'"
    )
    await bench.renewer().tick()

    assert [row["links"] for row in await bench.db.fetch(there)] == [1]
    assert bench.links[-1].runs == 0


async def test_a_link_in_a_hurry_does_not_wait_long_for_a_connection() -> None:
    """A server that accepts and says nothing: the next try follows after twice the deadline."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        link = PostgresServiceConnection(
            f"postgresql://nobody@127.0.0.1:{port}/none",
            schema="tenure",
            name="renewer",
            deadline=SECOND / 2,
        )
        with pytest.raises(Unreachable, match=r"no connection within 1 s"):
            await link.open()
