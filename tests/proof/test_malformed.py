"""`just prove malformed` has over 100 rows, and misses a bar for each thing that must not be."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from proof.malformed import ACCEPTED, ROWS, judge
from proof.report import Report
from support.malformed_rows import Outcome, kinds

if TYPE_CHECKING:
    from collections.abc import Callable

BREAKS: dict[str, Callable[[Outcome], object]] = {
    "accepts": lambda found: found.accepted.clear(),
    "accepts at most": lambda found: found.accepted.update({n: {} for n in range(1, ACCEPTED + 2)}),
    "not become dead letters": lambda found: found.failed.update({1: "attempts"}),
    "reasons": lambda found: setattr(found, "shown", None),
    "good jobs": lambda found: found.good.clear(),
    "not completed": lambda found: found.completed.clear(),
    "do not answer": lambda found: found.unanswered.append("/jobs: 500"),
    "do not end": lambda found: found.live.add(1),
}


def missed(found: Outcome) -> list[str]:
    report = Report({})
    judge(found, report)
    return report.missed


def outcome() -> Outcome:
    return Outcome(
        accepted={1: {"args": "{}"}},
        good={2},
        shown="unreadable",
        completed={2},
        failed={1: "unreadable"},
    )


def test_rows_that_end_as_dead_letters_meet_every_bar() -> None:
    assert missed(outcome()) == []


@pytest.mark.parametrize("what", BREAKS)
def test_everything_that_must_not_be_misses_its_bar(what: str) -> None:
    found = outcome()
    BREAKS[what](found)
    assert any(what in miss for miss in missed(found))


def test_the_long_form_has_over_100_rows() -> None:
    assert len([*chain(*kinds().values())]) >= ROWS
