"""Whatever ends a run of faults, faults are undone before the workers end."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from proof.faults.nemeses.base import Nemesis
from proof.faults.run import Plan, Run
from proof.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from proof.faults.harness import Bed
    from proof.faults.ticks import Ticks


class Strikes(Nemesis):
    """Stays in force for longer than the run."""

    name = "strikes"

    def __init__(self, did: list[str], number: int) -> None:
        self._did = did
        self._number = number

    def strike(self, bed: Bed) -> float:
        del bed
        self._did.append(f"struck {self._number}")
        return 600.0

    def relieve(self, bed: Bed) -> int:
        del bed
        self._did.append(f"relieved {self._number}")
        raise OSError(f"{self._number} cannot be undone")

    def finish(self, bed: Bed) -> None:
        del bed
        self._did.append(f"finished {self._number}")


class Reports(Exception):
    """The run got a signal to end."""


class BedOfOne:
    """Stands until both nemeses are in force, and then breaks under the run."""

    bug = None

    def __init__(self, place: Path, did: list[str]) -> None:
        self.rng = Random(1)  # noqa: S311 - to be repeated
        self.history = place / "history"
        self.history.touch()
        self.client_ended = None
        self._did = did

    def send_client(self, *_: object) -> None:
        """No client connects."""

    def rows(self, _query: str) -> list[tuple[int]]:
        """Nothing has ended."""
        return [(0,)]

    def supervise(self) -> None:
        """Break."""
        if len(self._did) == 2:
            raise Reports


def test_all_that_is_in_force_is_relieved_however_a_run_ends(tmp_path: Path) -> None:
    did: list[str] = []
    nemeses = [Strikes(did, 1), Strikes(did, 2)]
    bed = cast("Bed", BedOfOne(tmp_path, did))
    run = Run(
        bed,
        Report({}, versions={}),
        Plan(seed=1, jobs=1, rate=1),
        nemeses,
        ticks=cast("Ticks", None),
        light_every=(0, 0),
        heavy_every=(0, 0),
    )

    with pytest.raises(ExceptionGroup) as raised:
        run.go()

    assert len(raised.value.exceptions) == 2
    assert isinstance(raised.value.__context__, Reports)
    struck, fixed = did[:2], did[2:]
    assert sorted(struck) == ["struck 1", "struck 2"]
    assert sorted(fixed[:2]) == ["relieved 1", "relieved 2"]
    assert sorted(fixed[2:]) == ["finished 1", "finished 2"]
