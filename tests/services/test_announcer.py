"""What the services of a process see becomes events, and what is not worth telling does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure._model.attempt import AttemptOutcome
from tenure._model.event import EVENTS
from tenure._model.job import State
from tenure._model.outcome import Released, Succeeded
from tenure._runtime.events import EventEmitter, event_names
from tests.services.bench import DIED

if TYPE_CHECKING:
    from tenure import JobEvent
    from tests.services.bench import Bench


@pytest.fixture
def heard(bench: Bench) -> list[JobEvent]:
    """What listeners are told by the bench's settler, once they are closed."""
    heard: list[JobEvent] = []
    bench.app.hooks.listeners.add([name for name in EVENTS if "worker" not in name], heard.append)
    emitter = EventEmitter(bench.app.hooks.listeners, worker="anna")
    bench.events.settled.append(emitter.settled)
    return heard


def names(bench: Bench, heard: list[JobEvent]) -> list[tuple[str, int]]:
    """The events so far, with their jobs."""
    bench.app.hooks.listeners.close(20)
    return [(event.name, event.job_id) for event in heard]


async def test_returned_jobs_are_reported_only_if_they_had_started(
    bench: Bench, heard: list[JobEvent]
) -> None:
    bench.task()
    dispatcher = bench.dispatcher(slots=1)
    first, second = await bench.start(dispatcher, 2)
    dispatcher.stop_taking_work()
    bench.advance(1)
    bench.loop_way.started[0].end(Released())
    await bench.settler.tick()

    assert (await bench.get(second.job.id)).state is State.QUEUED
    assert names(bench, heard) == [("released", first.job.id)]
    assert heard[0].duration is not None
    assert heard[0].duration.total_seconds() == 1


async def test_late_result_is_not_reported_again(bench: Bench, heard: list[JobEvent]) -> None:
    """Who rescued the job has told that its lease was lost."""
    bench.task()
    dispatcher = bench.dispatcher()
    [held] = await bench.start(dispatcher)
    bench.advance(30)
    await bench.db.run(bench.db.store.leases.rescue())
    bench.loop_way.started[0].end(Succeeded())
    await bench.settler.tick()

    assert (await bench.get(held.job.id)).state is State.QUEUED
    assert names(bench, heard) == []


async def test_death_of_a_handler_process_is_reported_as_a_loss(
    bench: Bench, heard: list[JobEvent]
) -> None:
    bench.task(process=True)
    dispatcher = bench.dispatcher()
    [held] = await bench.start(dispatcher, max_losses=1)
    bench.process_way.started[0].end(DIED)
    await bench.settler.tick()

    assert names(bench, heard) == [("lost", held.job.id), ("failed", held.job.id)]
    assert [event.reason for event in heard] == ["poison", "poison"]


@pytest.mark.parametrize(
    ("state", "ending", "names"),
    [
        (State.COMPLETED, AttemptOutcome.COMPLETED, ["completed"]),
        (State.QUEUED, AttemptOutcome.FAILED, ["retrying"]),
        (State.FAILED, AttemptOutcome.FAILED, ["failed"]),
        (State.QUEUED, AttemptOutcome.TIMED_OUT, ["timed_out", "retrying"]),
        (State.FAILED, AttemptOutcome.TIMED_OUT, ["timed_out", "failed"]),
        (State.CANCELLED, AttemptOutcome.TIMED_OUT, ["timed_out", "cancelled"]),
        (State.QUEUED, AttemptOutcome.SNOOZED, ["snoozed"]),
        (State.QUEUED, AttemptOutcome.RELEASED, ["released"]),
        (State.CANCELLED, AttemptOutcome.RELEASED, ["cancelled"]),
        (State.CANCELLED, AttemptOutcome.CANCELLED, ["cancelled"]),
        (State.QUEUED, AttemptOutcome.LOST, ["lost"]),
        (State.FAILED, AttemptOutcome.LOST, ["lost", "failed"]),
    ],
)
def test_stored_state_decides_the_event(
    state: State, ending: AttemptOutcome, names: list[str]
) -> None:
    assert event_names(state, ending) == names
