"""How each job of a dead child ended, by how the child died (rule 8)."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from tenure._model.ids import JobId, Token, WorkerId
from tenure._model.lease import Lease
from tenure._model.outcome import Failed, Loss, Lost, Released
from tenure._runtime.lease_board import BoardEntry, Phase
from tenure.worker.recovery import Death, judge

if TYPE_CHECKING:
    from tenure._model.outcome import Outcome

WORKER = WorkerId(UUID(int=1))
NOW = 1000.0


def outcomes(phases: list[Phase], *, ended: float = 5.0, **death: Any) -> list[Outcome]:
    """The outcome of jobs in these phases; those that had ended did so that long ago."""
    entries = [
        BoardEntry(
            Lease(JobId(n), Token(1), WORKER, timedelta(seconds=30)),
            phase,
            stop_at=0.0,
            attempt=1,
            limit=3,
            since=NOW - ended,
        )
        for n, phase in enumerate(phases)
    ]
    return [outcome for _, outcome in judge(entries, Death(ended_at=NOW, **{"code": -9} | death))]


def names(found: list[Outcome]) -> list[str]:
    """Each in a word: lost with its counter, given back, not begun, or timed out."""
    words = []
    for outcome in found:
        match outcome:
            case Lost(loss):
                words.append(str(loss))
            case Released(begun):
                words.append("given back" if begun else "not begun")
            case Failed():
                words.append("timed out")
            case _:
                raise AssertionError(outcome)
    return words


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ([Phase.STARTED, Phase.IN_PROCESS], ["shared", "given back"]),
        ([Phase.STARTED, Phase.STARTED], ["shared", "shared"]),
        ([Phase.TIMED_OUT, Phase.AWAITING_PROCESS], ["timed out", "not begun"]),
        (
            [Phase.IN_PROCESS, Phase.AWAITING_PROCESS, Phase.ENDED],
            ["shared", "not begun", "given back"],
        ),
        (
            [Phase.AWAITING_PROCESS, Phase.UNSTARTED, Phase.ENDED],
            ["not begun", "not begun", "given back"],
        ),
    ],
)
def test_a_crash_is_counted_for_what_ran_in_the_process(
    phases: list[Phase], words: list[str]
) -> None:
    """What had not begun is never charged, and no attempt is."""
    assert names(outcomes(phases)) == words


def test_a_job_that_ended_a_moment_before_the_crash_is_suspect_too() -> None:
    """Its remains may have ended the process: a thread, a callback, a finalizer."""
    assert names(outcomes([Phase.ENDED, Phase.STARTED], ended=0.5)) == ["shared", "shared"]
    assert names(outcomes([Phase.ENDED, Phase.STARTED], ended=1.5)) == ["given back", "shared"]


@pytest.mark.parametrize(
    "death", [{"left": "drained"}, {"left": "doomed"}, {"killed": "grace"}, {"killed": "memory"}]
)
def test_what_we_end_ourselves_costs_nothing(death: dict[str, Any]) -> None:
    phases = [Phase.STARTED, Phase.IN_PROCESS, Phase.TIMED_OUT, Phase.UNSTARTED]
    assert names(outcomes(phases, **death)) == [
        "given back", "given back", "timed out", "not begun",
    ]  # fmt: skip


def test_past_a_deadline_a_service_thread_that_moves_is_an_outage() -> None:
    [outcome] = outcomes([Phase.STARTED], killed="lease", service_heartbeat_age=0.2)
    assert isinstance(outcome, Released)
    assert outcome.error is not None
    assert (outcome.begun, outcome.error.type) == (True, "Outage")


@pytest.mark.parametrize("killed", ["lease", "frozen"])
def test_one_that_stands_still_is_guilty_alone_and_suspect_among_others(killed: str) -> None:
    assert names(outcomes([Phase.STARTED], killed=killed, service_heartbeat_age=20)) == ["own"]
    both = outcomes([Phase.STARTED, Phase.STARTED], killed=killed, service_heartbeat_age=20)
    assert names(both) == ["shared", "shared"]


def test_a_loss_says_how_the_process_ended_and_who_was_next_to_it() -> None:
    [first, *_] = outcomes([Phase.STARTED] * 3, code=-11)
    assert isinstance(first, Lost)
    assert first.loss is Loss.SHARED
    assert first.error.message == (
        "its worker process died: SIGSEGV, with 2 other jobs running in it"
    )
    [killed] = outcomes([Phase.STARTED], code=-9, out_of_memory=True)
    assert isinstance(killed, Lost)
    assert killed.error.type == "OutOfMemory"


LOADING = """
import asyncio, sys
from tenure.worker.recovery import DeadChildRecovery

async def main():
    assert "psycopg" not in sys.modules
    loading = asyncio.create_task(
        DeadChildRecovery(name="w").connect_to("postgresql://none@127.0.0.1:1/none", "tenure")
    )
    looks = 0
    while not loading.done():
        await asyncio.sleep(0.001)
        looks += 1
    assert "psycopg" in sys.modules
    print(looks)

asyncio.run(main())
"""


def test_parent_watches_its_children_while_it_loads_the_driver() -> None:
    """Found by `just prove batteries`: kills came 0.6 s late after the first. Shows R4."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) >= 5
