"""What a short form missed is tried once more if the machine may be to blame; a zero is final."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from proof import totals
from proof.report import Report
from proof.second_try import tried

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tell = Callable[[Report], None]


def sound(report: Report) -> None:
    """Meets every bar."""
    report.none("jobs lost", [])
    report.at_most("longest wait", 1, 2, " s")


def slow(report: Report) -> None:
    """Misses a bar of time."""
    report.none("jobs lost", [])
    report.at_most("longest wait", 3, 2, " s")


def few(report: Report) -> None:
    """Misses a bar of count."""
    report.at_least("jobs", 1, 2)


def late(report: Report) -> None:
    """Misses a zero that a slow machine alone can miss."""
    report.none("jobs still to end", [7], timed=True)


def unsafe(report: Report) -> None:
    """Finds what must not be, and is slow as well."""
    slow(report)
    report.none("jobs lost", [7])


def negative(report: Report) -> None:
    """Counts what must not be."""
    report.at_most("jobs more than keys", 1, 0)


class Runs:
    """Runs that tell these, one after the other."""

    def __init__(self, *tells: Tell) -> None:
        self._tells = iter(tells)
        self.count = 0

    def __call__(self) -> Report:
        """The next of them."""
        self.count += 1
        report = Report({"number": self.count}, versions={})
        report.part("part")
        next(self._tells)(report)
        return report


def _read(path: Path) -> dict[str, object]:
    whole: dict[str, object] = json.loads(path.read_text())
    return whole


@pytest.mark.parametrize("first", [slow, few, late])
def test_what_the_machine_may_have_missed_is_tried_once_more(first: Tell, tmp_path: Path) -> None:
    runs = Runs(first, sound)

    assert tried(runs, tmp_path / "subject.json", short=True) == 0

    assert runs.count == 2
    assert _read(tmp_path / "subject.json")["missed"] == []


def test_the_second_run_decides_and_there_is_no_third(tmp_path: Path) -> None:
    runs = Runs(slow, slow, sound)

    assert tried(runs, tmp_path / "subject.json", short=True) == 1

    assert runs.count == 2


def test_what_must_not_be_in_the_second_run_is_seen(tmp_path: Path) -> None:
    runs = Runs(slow, unsafe)

    assert tried(runs, tmp_path / "subject.json", short=True) == 1


@pytest.mark.parametrize("first", [unsafe, negative])
def test_a_missed_zero_is_final(first: Tell, tmp_path: Path) -> None:
    runs = Runs(first, sound)

    assert tried(runs, tmp_path / "subject.json", short=True) == 1

    assert runs.count == 1
    assert _read(tmp_path / "subject.json")["final"]


def test_the_first_report_is_kept_beside_the_second(tmp_path: Path) -> None:
    """With what the first has left behind: it may not come again."""
    runs = Runs(slow, sound)

    def run() -> Report:
        (tmp_path / "subject").mkdir()
        (tmp_path / "subject/history").write_text(str(runs.count + 1))
        return runs()

    tried(run, tmp_path / "subject.json", short=True)

    first = _read(tmp_path / "subject.first.json")
    assert first["number"] == 1
    assert first["missed"] == ["part: longest wait: 3 s, bar <= 2 s"]
    assert "**missed**" in (tmp_path / "subject.first.md").read_text()
    assert _read(tmp_path / "subject.json")["number"] == 2
    assert (tmp_path / "subject.first/history").read_text() == "1"
    assert (tmp_path / "subject/history").read_text() == "2"


def test_a_run_that_needs_no_second_has_no_first_of_an_earlier_one_beside_it(
    tmp_path: Path,
) -> None:
    tried(Runs(slow, sound), tmp_path / "subject.json", short=True)
    tried(Runs(sound), tmp_path / "subject.json")

    assert {path.name for path in tmp_path.iterdir()} == {"subject.json", "subject.md"}


@pytest.mark.parametrize(("short", "bug"), [(False, None), (True, "some")])
def test_long_runs_and_runs_with_a_bug_are_not_tried_again(
    short: bool,
    bug: str | None,
    tmp_path: Path,
) -> None:
    runs = Runs(slow, sound)

    assert tried(runs, tmp_path / "subject.json", short=short, bug=bug) == 1

    assert runs.count == 1


def test_totals_count_no_first_run_and_no_short_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "_KEPT", tmp_path / "kept")
    tried(Runs(sound), tmp_path / "runs/long.json")
    tried(Runs(sound), tmp_path / "runs/short.json", short=True)
    tried(Runs(sound), tmp_path / "runs/seeded.json", bug="some")
    # Of a run that is not marked short, as those of `bugs` without a bug are.
    (tmp_path / "runs/long.first.json").write_bytes((tmp_path / "runs/long.json").read_bytes())

    totals.keep(tmp_path / "runs")

    assert [run["name"] for run in totals.runs()] == ["long"]
