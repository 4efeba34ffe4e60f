"""The page of the proof says what the kept runs say, and no more."""

from __future__ import annotations

from proof import totals


def test_the_page_adds_up_the_kept_runs() -> None:
    page = totals.PAGE.read_text()

    assert totals.written(page, totals.runs()) == page


def test_every_kept_run_that_missed_a_bar_is_explained_on_the_page() -> None:
    section = totals.PAGE.read_text().split("## Runs that failed")[1].split("\n## ")[0]

    for run in totals.runs():
        explained = run["name"] in section and run["at"][:16].replace("T", " ") in section
        assert not run["missed"] or explained, run["name"]
