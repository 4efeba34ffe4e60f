"""Each finding of the security review has a test that fails when the finding is brought back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from proof.mutations.holes import BEDS, HOLES
from proof.mutations.seeded_copy import failures

if TYPE_CHECKING:
    from proof.mutations.holes import Hole


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bed", BEDS)
def test_the_test_of_each_hole_notices_it(bed: str) -> None:
    """Each test passes without the holes, as part of its own suite."""
    holes = [hole for hole in BEDS[bed] if os.geteuid() == 0 or not hole.as_root]
    failed = failures(holes)
    missed = {
        hole.name: failed.get(hole.name, "passed")[:2000]
        for hole in holes
        if hole.shows not in failed.get(hole.name, "")
    }
    assert missed == {}


@pytest.mark.parametrize("hole", HOLES, ids=lambda hole: hole.name)
def test_a_hole_still_fits_what_it_changes(hole: Hole, pytestconfig: pytest.Config) -> None:
    for edit in hole.edits:
        text = (pytestconfig.rootpath / edit.file).read_text()
        assert text.count(edit.old) == 1, edit
    path, _, name = hole.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (pytestconfig.rootpath / path).read_text()


def test_every_finding_has_a_hole_and_every_hole_of_a_bed_its_own_test() -> None:
    assert {hole.finding for hole in HOLES} == {f"S{number}" for number in range(1, 24)}
    assert len({hole.name for hole in HOLES}) == len(HOLES)
    for holes in BEDS.values():
        assert len({hole.test for hole in holes}) == len(holes)
