"""Who ends by himself is counted, and not only replaced."""

from __future__ import annotations

import signal
from random import Random
from typing import TYPE_CHECKING

import pytest

from proof.crash.fleet import Fleet, Shape
from proof.faults.crew import Post
from proof.faults.history import ANSWERED, GAVE_UP, REQUESTED, Enqueues, Pen, events, given_up
from support.processes import alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_ONE = "postgresql://nobody@127.0.0.1:1/none"
WAIT = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); signal.pause()"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """One worker, which is a program that waits to be told to end."""
    fleet = Fleet(Shape(workers=1, processes=1, slots=1), tmp_path, {}, work=WAIT)
    yield fleet
    fleet.end()


def post(directory: Path) -> Post:
    """A place for workers, none of which finds its app."""
    rng = Random(0)  # noqa: S311 - to be repeated
    return Post(1, NO_ONE, directory, {}, rng, slots=1)


def gone(pid: int) -> bool:
    return wait_for(lambda: not alive(pid), 30)


def test_a_worker_that_ended_by_itself_is_noted_at_its_post(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.faults.crew._TARGET", "no.such:app")
    place = post(tmp_path)
    with place.proxy:
        assert gone(place.parent)
        place.end()

    [records] = place.deserted
    assert records.startswith("w1: code ")
    assert "after nothing" in records


def test_a_worker_that_was_ended_is_not(tmp_path: Path) -> None:
    place = post(tmp_path)
    with place.proxy:
        first = place.parent
        place.dismiss(signal.SIGKILL)
        assert gone(first)
        second = place.parent
        assert second != first
        place.dismiss(signal.SIGKILL)
        assert gone(second)
        place.end()

    assert place.deserted == []


def test_a_fleet_notes_who_left_and_who_was_not_dismissed_so(fleet: Fleet) -> None:
    fleet.start_all()
    [first] = fleet.workers
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(10)
    fleet.supervise()
    [second] = fleet.workers
    second.dismiss(signal.SIGKILL)
    second.process.wait(10)
    fleet.supervise()
    fleet.end()

    assert fleet.deserted == ["w1: exit code -9"]


def test_abandoned_enqueue_is_in_the_history_without_a_job(tmp_path: Path) -> None:
    path = tmp_path / "history"
    pen = Pen(str(path))
    pen.write(REQUESTED, "1.0", "-", 2, "-", 10)
    pen.write(GAVE_UP, "1.0", "121.0", 2, "-", 10)
    pen.write(REQUESTED, "122.0", "-", 1, "-", 12)
    pen.write(ANSWERED, "122.0", "123.0", 1, "7", 12)

    assert list(given_up(path)) == ["2 jobs from label 10 on, after 120 s"]
    assert Enqueues(path).acknowledged == {12: 7}
    assert events(path) == {}
