"""The page of the proof says what the kept runs say, and no more."""

from __future__ import annotations

from proof import totals


def test_the_page_adds_up_the_kept_runs() -> None:
    page = totals.PAGE.read_text()

    assert totals.written(page, totals.runs()) == page


def test_no_kept_run_missed_a_bar() -> None:
    assert [run["missed"] for run in totals.runs() if run["missed"]] == []
